package fault_test

import (
	"errors"
	"fmt"
	"os"
	"syscall"
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

// TestNoRoom checks that a full disk is Unavailable, even if the error was wrapped in a fault that blames the caller.
func TestNoRoom(t *testing.T) {
	t.Parallel()

	for _, reason := range []error{syscall.ENOSPC, syscall.EDQUOT} {
		cause := &os.PathError{Op: "write", Path: "/var/tmp/quern/body", Err: reason}

		for name, err := range map[string]error{
			"foreign":   fmt.Errorf("spooling: %w", cause),
			"blamed":    fault.Wrap(cause, fault.BadRequest, "The body could not be read to its end."),
			"internal":  fault.Wrap(cause, fault.Internal, "The statement could not be run."),
			"as it is":  fault.NoRoom(cause),
			"one of it": errors.Join(errors.New("other"), cause),
		} {
			got := fault.From(err)
			require.Equal(t, fault.Unavailable, got.Code, name)
			require.Positive(t, got.RetryAfter, name)
			require.NotContains(t, got.Message, "/var/tmp", name)
			require.True(t, fault.Is(err, fault.Unavailable), name)
			require.False(t, fault.Is(err, fault.BadRequest), name)
		}
	}

	require.False(t, fault.IsNoRoom(syscall.EFBIG))
}

func TestCodesAreUnique(t *testing.T) {
	t.Parallel()

	seen := map[fault.Code]bool{}
	for _, code := range fault.Codes() {
		require.False(t, seen[code], code)
		seen[code] = true
	}
}
