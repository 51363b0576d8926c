package run

import (
	"context"
	"errors"
	"time"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
)

// A run and an open stream outlive the request that began them, so they check its credential again: before each
// statement (the query package does that), before each delivery of events with content, and every checkEvery whatever
// happens. The periodic check ends runs and streams that write nothing.

// checkEvery is how often the credentials of everything that goes on in this process are checked, with one statement.
const checkEvery = 250 * time.Millisecond

// errLapsed is how a run ends, and a stream, when the credential that began it is no longer valid.
func errLapsed() error {
	return fault.New(fault.Unauthorized, "The token or the account that began this is no longer valid, so it was ended. Ask again with a valid token.")
}

// lapsed tells whether an error says that a credential is no longer valid.
func lapsed(err error) bool { return fault.Is(err, fault.Unauthorized) }

// heldBy lets the follower end when the credential of the caller lapses.
func (f *follower) heldBy(who auth.Principal) {
	f.tail.mu.Lock()
	defer f.tail.mu.Unlock()

	f.holder = who.Holder()
}

// checkHolders ends followers whose credential has lapsed, until ctx ends. While the database does not answer nobody
// gets anything that could be kept back, and look says that it does not.
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

// holders lists the credentials of all followers without repeats.
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

// end wakes the followers with these credentials for the last time.
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

// reason is why the work on a run failed, or nil. An agent may take the refusal of a statement for an answer, so the
// credential is checked once more before the run ends. failure means that it could not be checked.
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

// notEnded leaves out that somebody else has ended the run.
func notEnded(err error) error {
	if errors.Is(err, errEnded) {
		return nil
	}

	return err
}
