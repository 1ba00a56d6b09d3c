"""What a report shows: charts and tables, as plain data."""
