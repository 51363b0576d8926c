package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPickOf(t *testing.T) {
	t.Parallel()

	type picked struct {
		number     int
		understood bool
	}

	for line, want := range map[string]picked{
		"": {0, true}, "n": {0, true}, "no": {0, true}, "1": {1, true}, "3": {3, true},
		"4": {4, false}, "0": {0, false}, "-1": {-1, false}, "two": {0, false}, "y": {1, false},
	} {
		number, understood := pickOf(line, 3)
		require.Equal(t, want, picked{number, understood}, line)
	}

	number, understood := pickOf("y", 1)
	require.Equal(t, picked{1, true}, picked{number, understood}, "there is one option")
}
