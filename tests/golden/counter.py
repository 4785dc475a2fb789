"""Numbers from a counter: the same bits here and in golden_data.cpp, so that weights and batches need no file.

hash(seed, stream, index) chains the finalizer of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom
number generators", OOPSLA 2014) over its three words. Everything else is an exact function of that hash.
"""

import math

import numpy as np

PARAMETER_STREAM = 1  # + the parameter's place in module order
INPUT_STREAM = 1000  # + the update's number, from 0
LABEL_STREAM = 2000  # + the update's number, from 0
SAMPLE_STREAM = 3000  # + the parameter's place in module order
SAMPLE_SEED = 0  # which elements are recorded does not depend on the trajectory's seed


def _mix(z):
    z = (z + np.uint64(0x9E3779B97F4A7C15)).astype(np.uint64)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def hashes(seed, stream, count):
    """count hashes, of the indices 0, 1, ... as uint64."""
    key = _mix(_mix(np.array([seed], np.uint64)) ^ np.uint64(stream))
    return _mix(key ^ np.arange(count, dtype=np.uint64))


def uniform(seed, stream, count, bound):
    """float32 in [-bound, bound): 24 bits of the hash, scaled in double, rounded once."""
    steps = (hashes(seed, stream, count) >> np.uint64(40)).astype(np.int64) - (1 << 23)
    return (steps.astype(np.float64) * 2.0**-23 * bound).astype(np.float32)


def labels(seed, stream, count, classes):
    return (hashes(seed, stream, count) % np.uint64(classes)).astype(np.int64)


def sampled(place, size, quota):
    """The recorded elements of the parameter at `place`: all of a small one, else `quota` draws, repeats allowed."""
    if size <= quota:
        return np.arange(size)
    return (hashes(SAMPLE_SEED, SAMPLE_STREAM + place, quota) % np.uint64(size)).astype(np.int64)


def fan_in_bound(fan_in):
    return 1.0 / math.sqrt(fan_in)
