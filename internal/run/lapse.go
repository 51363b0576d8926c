package run

import (
	"context"
	"errors"
	"time"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
)

// A run and an open stream outlive the request that started them, so its credential is checked again: before each
// statement (by the query package), before each delivery of events with content (streams with the same rights and the same
// events share a check, see share), and every checkEvery. The periodic check ends runs and streams that have no activity.

// checkEvery is how often the credentials of all runs and streams of this process are checked, with one statement.
const checkEvery = 250 * time.Millisecond

// errLapsed returns the fault with which a run or a stream ends when the credential that started it is no longer valid.
func errLapsed() error {
	return fault.New(fault.Unauthorized, "Stopped because the token or account that started it is no longer valid. Ask again with a valid token.")
}

// lapsed reports whether an error means that a credential is no longer valid.
func lapsed(err error) bool { return fault.Is(err, fault.Unauthorized) }

// heldBy makes the follower end when the credential of the caller is no longer valid.
func (f *follower) heldBy(who auth.Principal) {
	f.tail.mu.Lock()
	defer f.tail.mu.Unlock()

	f.holder = who.Holder()
}

// checkHolders disconnects followers whose credential is no longer valid, until ctx ends. It ignores errors: while the
// database does not answer, followers receive no event with content, and look logs the failure.
func (t *tail) checkHolders(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(checkEvery):
		}

		if held := t.holders(); len(held) > 0 {
			if lapsed, err := t.credentials.Lapsed(ctx, held); err == nil {
				t.end(lapsed)
			}
		}
	}
}

// holders returns the credentials of all followers, each once.
func (t *tail) holders() (list []auth.Holder) {
	t.mu.Lock()
	defer t.mu.Unlock()

	met := map[auth.Holder]bool{{}: true}

	for _, one := range t.topics {
		for f := range one.followers {
			if !met[f.holder] {
				met[f.holder] = true
				list = append(list, f.holder)
			}
		}
	}

	return list
}

// end marks the followers with these credentials as lapsed and wakes them, so that they fail with errLapsed.
func (t *tail) end(lapsed []auth.Holder) {
	t.mu.Lock()
	defer t.mu.Unlock()

	gone := map[auth.Holder]bool{}
	for _, holder := range lapsed {
		gone[holder] = true
	}

	for _, one := range t.topics {
		for f := range one.followers {
			f.lapsed = f.lapsed || gone[f.holder]
		}

		if len(gone) > 0 {
			one.tell()
		}
	}
}

// reason returns why the work on a run failed, or nil. An agent may treat the refusal of a statement as an answer, so the
// credential is checked again before the run ends. failure is set if that check failed.
func (r *Runs) reason(ctx context.Context, run Run, cause, err error) (reason, failure error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()

	switch checked := r.Credentials.Check(ctx, run.caller); {
	case lapsed(cause), lapsed(checked):
		return errLapsed(), nil
	default:
		return err, checked
	}
}

// notEnded returns nil for errEnded, and other errors as they are.
func notEnded(err error) error {
	if errors.Is(err, errEnded) {
		return nil
	}

	return err
}
