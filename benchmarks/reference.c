/* Contour SGLD on the mixture 0.4 N(-6,1) + 0.6 N(4,1), as one would write it by hand for one chain.
 *
 * The yardstick for how much of the machine the compiled loop of the library uses. It does the same
 * arithmetic in float32: energy and noisy gradient, bins, theta in log space with a common offset
 * (src/contourmc/flattening.py, scheme "centred", rule "original"), weights, weighted sums and kept draws
 * (src/contourmc/engine.py). Random numbers come from xoshiro256++ and a ziggurat, the fastest simple way.
 */
#include <math.h>
#include <stdint.h>

enum { BINS = 50, BLOCK = 1024, THIN = 100, LAYERS = 128 };
static const float LOW = 2.0f, WIDTH = 1.0f, ZETA = 0.75f, STEP_SIZE = 0.1f, GRADIENT_NOISE = 0.1f;
static const float HALF_LOG_2PI = 0.91893853f;

/* Marsaglia & Tsang's ziggurat for 128 layers: where its tail begins, and the area of a layer. */
static const double TAIL = 3.442619855899, AREA = 9.91256303526217e-3;

typedef struct {
    uint64_t s[4];
    float edge[LAYERS + 1], height[LAYERS + 1];
} Random;

typedef struct {
    float position, energy, log_weight, multiplier;
} Draw;

static uint64_t rotate(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

static uint64_t bits(Random *random) {
    uint64_t *s = random->s, result = rotate(s[0] + s[3], 23) + s[0], shifted = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotate(s[3], 45);
    return result;
}

static float uniform(Random *random) { return ((bits(random) >> 40) + 0.5f) * 0x1p-24f; }

static void seed_random(Random *random, uint64_t seed) {
    for (int i = 0; i < 4; i++) { /* splitmix64 */
        uint64_t z = (seed += 0x9e3779b97f4a7c15);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        random->s[i] = z ^ (z >> 31);
    }
    double edge = TAIL, height = exp(-TAIL * TAIL / 2);
    random->edge[0] = AREA / height; /* the lowest layer, with its tail, as if it were a rectangle */
    random->height[0] = 0;
    for (int i = 1; i < LAYERS; i++) {
        random->edge[i] = edge;
        random->height[i] = height;
        height += AREA / edge;
        edge = sqrt(-2 * log(height));
    }
    random->edge[LAYERS] = 0;
    random->height[LAYERS] = 1;
}

static float normal(Random *random) {
    for (;;) {
        uint64_t word = bits(random);
        int layer = word % LAYERS;
        float x = (int32_t)(word >> 32) * 0x1p-31f * random->edge[layer];
        if (fabsf(x) < random->edge[layer + 1]) return x;
        if (layer == 0) {
            float beyond, height;
            do {
                beyond = -logf(uniform(random)) / (float)TAIL;
                height = -logf(uniform(random));
            } while (2 * height < beyond * beyond);
            return copysignf((float)TAIL + beyond, x);
        }
        float low = random->height[layer], high = random->height[layer + 1];
        if (low + uniform(random) * (high - low) < expf(-x * x / 2)) return x;
    }
}

static float clip(float x, float low, float high) { return x < low ? low : x > high ? high : x; }

/* Run `steps` steps from x = 0. Writes theta (BINS numbers), visits (BINS) and steps / THIN draws;
 * returns the weighted mean of x. */
float run(int steps, uint64_t seed, float *theta, int32_t *visits, Draw *draws) {
    Random random;
    seed_random(&random, seed);
    float x = 0, offset = 0, log_scale = -1e30f, weight = 0, first = 0, second = 0;
    const float noise_scale = sqrtf(2 * STEP_SIZE);
    for (int i = 0; i < BINS; i++) {
        theta[i] = logf(1.0f / BINS);
        visits[i] = 0;
    }

    for (int step = 1; step <= steps; step++) {
        if ((step - 1) % BLOCK == 0) { /* fold the offset in */
            float most = theta[0], total = 0;
            for (int i = 1; i < BINS; i++) most = fmaxf(most, theta[i]);
            for (int i = 0; i < BINS; i++) total += expf(theta[i] - most);
            total = most + logf(total);
            for (int i = 0; i < BINS; i++) theta[i] -= total;
            offset = 0;
        }

        /* Energy and gradient share one exponential. */
        float left = logf(0.4f) - (x + 6) * (x + 6) / 2, right = logf(0.6f) - (x - 4) * (x - 4) / 2;
        float ratio = expf(-fabsf(left - right)), larger = 1 / (1 + ratio), smaller = ratio * larger;
        float energy = HALF_LOG_2PI - fmaxf(left, right) - logf(1 + ratio);
        float share = left > right ? larger : smaller;
        float gradient = share * (x + 6) + (1 - share) * (x - 4) + GRADIENT_NOISE * normal(&random);

        /* Bin, log Psi and its slope. */
        float level = (energy - LOW) * (1 / WIDTH);
        int bin = clip(ceilf(level), 0, BINS - 1);
        float knot = clip(level, 0, BINS - 2) + 0.5f, below = clip(ceilf(knot) - 1, 0, BINS - 2);
        float from = theta[(int)below], difference = theta[(int)below + 1] - from;
        float slope = level > 0 && level <= BINS - 2 ? difference * (1 / WIDTH) : 0;
        float log_weight = ZETA * (from + difference * (knot - below) + offset);
        float multiplier = 1 + ZETA * slope;

        /* Learn theta. */
        float gain = log_weight - logf(powf(step, 0.6f) + 100);
        float growth = 1 / (1 - expf(gain)), here = theta[bin], there = gain - offset;
        float closer = expf(-fabsf(there - here));
        theta[bin] = fmaxf(here, there) + logf(there > here ? growth + closer : 1 + closer * growth);
        offset -= logf(growth);
        visits[bin]++;

        /* Weighted sums, relative to the largest weight; the draws. */
        float apart = expf(-fabsf(log_weight - log_scale));
        float old = log_weight > log_scale ? apart : 1, new = log_weight > log_scale ? 1 : apart;
        log_scale = fmaxf(log_scale, log_weight);
        weight = old * weight + new;
        first = old * first + new * x;
        second = old * second + new * x * x;
        draws[(step - 1) / THIN] = (Draw){x, energy, log_weight, multiplier};

        x += -STEP_SIZE * multiplier * gradient + noise_scale * normal(&random);
    }
    for (int i = 0; i < BINS; i++) theta[i] += offset;
    return second >= 0 ? first / weight : NAN; /* uses all sums, so that none is optimised away */
}
