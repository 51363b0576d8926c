package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/api"
)

func TestSpread(t *testing.T) {
	t.Parallel()

	require.Empty(t, spread(nil))
	require.Empty(t, spread(&[]api.Bin{{Count: 3}}), "one bin shows nothing")
	require.Equal(t, "▁█▅▁", spread(&[]api.Bin{{Count: 0}, {Count: 1000}, {Count: 500}, {Count: 1}}))
	require.Equal(t, "▁▁", spread(&[]api.Bin{{}, {}}))
}
