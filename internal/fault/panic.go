package fault

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
)

// Recover turns a panic into an Internal fault. Every goroutine defers it, because a panic in a goroutine otherwise
// ends the process:
//
//	group.Go(func() (err error) {
//		defer fault.Recover(&err)
//		…
//	})
func Recover(err *error) {
	if problem := recover(); problem != nil {
		*err = Panicked(problem)
	}
}

// Try calls do and turns its panic into an Internal fault.
func Try(do func() error) (err error) {
	defer Recover(&err)

	return do()
}

// Panicked returns the fault for a value that recover returned, with the stack for the log. The text of a panic can
// quote a cell, so only errors of the runtime keep their text; for all other values the fault contains only their type.
func Panicked(problem any) *Error {
	what := fmt.Sprintf("%T", problem)

	if err, ok := problem.(error); ok {
		if own, ok := errors.AsType[runtime.Error](err); ok {
			what = own.Error()
		}
	}

	return From(fmt.Errorf("panic: %s\n%s", what, debug.Stack()))
}
