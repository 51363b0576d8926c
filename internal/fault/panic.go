package fault

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
)

// Recover turns a panic into an Internal fault. A goroutine defers it, because nothing else stands between its panic
// and the end of the process:
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

// Try runs do; its panic is an Internal fault.
func Try(do func() error) (err error) {
	defer Recover(&err)

	return do()
}

// Panicked is the fault for what recover returned, with the stack for the log. The text of a panic can quote a cell, so
// only the runtime's own errors are told in their words; of all others the type must do.
func Panicked(problem any) *Error {
	what := fmt.Sprintf("%T", problem)

	if err, ok := problem.(error); ok {
		if own, ok := errors.AsType[runtime.Error](err); ok {
			what = own.Error()
		}
	}

	return From(fmt.Errorf("panic: %s\n%s", what, debug.Stack()))
}
