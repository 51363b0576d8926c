package run

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/query"
)

// actionRead is the audit action for reading the stored result of a run.
const actionRead = "run.read"

// source is a dataset that a run read, with its current path.
type source struct {
	account, dataset uuid.UUID
	path             catalog.Path
}

// pair joins reads with their paths. Both slices must have the same length and order.
func pair(reads []query.Read, paths []catalog.Path) (list []source) {
	for i, read := range reads {
		list = append(list, source{account: read.Account, dataset: read.ID, path: paths[i]})
	}

	return list
}

// note records in the audit of the owners that the caller reads stored rows of these datasets, each dataset once.
func (r *Runs) note(ctx context.Context, who auth.Principal, action string, list []source) error {
	var (
		entries = map[uuid.UUID][]audit.Entry{}
		met     = map[uuid.UUID]bool{}
	)

	for _, one := range list {
		if !met[one.dataset] {
			met[one.dataset] = true
			target := audit.Target{Kind: "dataset", ID: one.dataset.String(), Namespace: one.path.Namespace, Dataset: one.path.Dataset}
			entries[one.account] = append(entries[one.account], who.Audit(one.account, r.now(), action, target))
		}
	}

	for _, list := range entries {
		if err := r.writeAudit(ctx, list...); err != nil {
			return err
		}
	}

	return nil
}

// writeAudit writes audit entries of one account.
func (r *Runs) writeAudit(ctx context.Context, entries ...audit.Entry) error {
	return r.DB.InTx(ctx, func(tx postgres.Tx) error {
		for _, entry := range entries {
			if err := audit.WriteTx(ctx, tx, entry); err != nil {
				return err
			}
		}

		return nil
	})
}

// note records in the audit the datasets whose rows the stream is about to deliver, each dataset once per stream.
func (s *Stream) note(ctx context.Context, events []Event) error {
	if !slices.ContainsFunc(events, func(e Event) bool { return e.Kind == EventStep || e.Kind == EventWaiting || e.Kind == EventCompleted }) {
		return nil
	}

	reads, err := s.runs.reads(ctx, s.who.Account, s.run.ID)
	if err != nil || !slices.ContainsFunc(reads, func(read query.Read) bool { return !s.noted[read.ID] }) {
		return err
	}

	paths, err := s.runs.names(ctx, s.who, reads)
	if err != nil || len(reads) != len(paths) { // unless all datasets may be seen, nothing is delivered
		return err
	}

	fresh := slices.DeleteFunc(pair(reads, paths), func(one source) bool { return s.noted[one.dataset] })
	if err := s.runs.note(ctx, s.who, actionRead, fresh); err != nil {
		return err
	}

	for _, one := range fresh {
		s.noted[one.dataset] = true
	}

	return nil
}
