grep -q 42 answer.txt && echo passed || { echo FAILED; exit 1; }
