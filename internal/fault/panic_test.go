package fault_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/fault"
)

// TestPanic checks that a panic becomes a fault with its position in the code, which quotes only errors of the runtime.
func TestPanic(t *testing.T) {
	t.Parallel()

	const cell = "4711 Jane Doe"

	for name, c := range map[string]struct {
		do   func() error
		says string
	}{
		"a text":  {func() error { panic("no number: " + cell) }, "panic: string"},
		"error":   {func() error { panic(errors.New(cell)) }, "panic: *errors.errorString"},
		"runtime": {func() error { return []error{}[len(cell)] }, "index out of range [13] with length 0"},
	} {
		err := fault.Try(c.do)
		require.True(t, fault.Is(err, fault.Internal), name)
		require.ErrorContains(t, err, c.says, name)
		require.ErrorContains(t, err, "panic_test.go:", name)
		require.NotContains(t, err.Error(), cell, name)
	}

	require.NoError(t, fault.Try(func() error { return nil }))
	require.Equal(t, fault.Absent(), fault.Try(func() error { return fault.Absent() }))
}
