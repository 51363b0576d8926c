package a2a

import (
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2asrv"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/fault"
)

var _ a2asrv.RequestHandler = handler{}

func TestEveryFaultHasAnError(t *testing.T) {
	t.Parallel()

	for _, code := range fault.Codes() {
		require.Contains(t, faults(), code)
		require.Contains(t, codes(), faults()[code], code)
		require.Negative(t, failureOf(fault.New(code, "x")).Code)
	}

	require.Len(t, faults(), len(fault.Codes()))
}
