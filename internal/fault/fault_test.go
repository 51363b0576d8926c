package fault_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/fault"
)

func TestForeignErrorsAreInternalAndHidden(t *testing.T) {
	t.Parallel()

	cause := errors.New("password=hunter2")
	got := fault.From(cause)

	require.Equal(t, fault.Internal, got.Code)
	require.NotContains(t, got.Message, "hunter2")
	require.ErrorIs(t, got, cause)
}

func TestFromFindsAWrappedFault(t *testing.T) {
	t.Parallel()

	err := fmt.Errorf("creating: %w", fault.Invalid("name", "is taken"))

	require.Equal(t, []fault.Sub{{Code: "name", Message: "is taken"}}, fault.From(err).Subs)
	require.True(t, fault.Is(err, fault.ValidationFailed))
	require.False(t, fault.Is(err, fault.Conflict))
}

func TestCodesAreUnique(t *testing.T) {
	t.Parallel()

	seen := map[fault.Code]bool{}
	for _, code := range fault.Codes() {
		require.False(t, seen[code], code)
		seen[code] = true
	}
}
