#!/bin/sh
# Sums worked time from lines of `date,person,from,to`; see README.md.
set -eu

# 14:45 -> 885
in_minutes() {
    hours=${1%%:*}
    minutes=${1##*:}
    echo $((hours * 60 + minutes))
}

# 885 -> 14:45
as_time() {
    printf '%d:%02d' $(($1 / 60)) $(($1 % 60))
}

total=0
for person in $(cut -d, -f2 "$1" | sort -u); do
    sum=0
    while IFS=, read -r _ name from to; do
        [ "$name" = "$person" ] || continue
        begin=$(in_minutes "$from")
        end=$(in_minutes "$to")
        sum=$((sum + end - begin))
    done <"$1"
    echo "$person $(as_time $sum)"
    total=$((total + sum))
done
echo "total $(as_time $total)"
