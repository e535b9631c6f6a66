"""Change points as Apache Otava finds them: a series a line in, the places of its points a line out."""

import sys

from otava.analysis import compute_change_points

for line in sys.stdin:
    series = [float(word) for word in line.split()]
    points, _ = compute_change_points(series, window_len=50, max_pvalue=0.001, min_magnitude=0.05)
    print(*[point.index for point in points])
