package upload

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// Binding names the ingestion and the dataset that files are for.
type Binding struct {
	Account   uuid.UUID
	Dataset   uuid.UUID
	Ingestion uuid.UUID
}

// reservedTime is the time after which the cleanup checks whether the ingestion was created. It is longer than a
// request takes, and short enough for a client whose request was interrupted to wait.
const reservedTime = time.Minute

// Reserve binds completed files of the caller's session to a dataset: the named files, or all. The ingestion is
// written in the dataset's account afterwards, so the reservation must then be confirmed. For a dry run (look)
// Reserve returns the files without binding them.
//
// Faults: NotFound, InvalidState for a file that is not completed or belongs to another dataset, Conflict while
// another request reserves the file.
func (u Uploads) Reserve(ctx context.Context, who auth.Principal, session uuid.UUID, named []uuid.UUID, to Binding, look bool) (files []File, err error) {
	err = u.DB.InTx(ctx, func(tx postgres.Tx) error {
		found, err := u.load(ctx, tx, who, session)
		if err != nil {
			return err
		}

		if err := lockSession(ctx, tx, found); err != nil {
			return err
		}

		if found, err = u.load(ctx, tx, who, session); err != nil {
			return err
		}

		if files, err = found.completed(named); err != nil || look {
			return err
		}

		ids := make([]uuid.UUID, len(files))
		for i, f := range files {
			ids[i] = f.ID
		}

		certain, bound, err := bindFiles(ctx, tx, found, ids, to, u.Now().Add(reservedTime))

		switch {
		case err != nil:
			return err
		case bound < len(ids):
			return fault.New(fault.InvalidState, "A file of the session was loaded into another dataset, or has expired. Upload it again.")
		case certain < len(ids):
			return fault.New(fault.Conflict, "Another request is loading a file of the session. If that request was interrupted, try again in two minutes.")
		}

		return nil
	})

	return files, err
}

// completed returns the named files, or all completed files if none are named.
func (s Session) completed(named []uuid.UUID) ([]File, error) {
	var files []File

	for _, f := range s.Files {
		switch {
		case len(named) > 0 && !slices.Contains(named, f.ID):
		case f.Status == Completed:
			files = append(files, f)
		case len(named) > 0:
			return nil, fault.New(fault.InvalidState, "The file "+f.ID.String()+" is not completed. Finish its upload first.")
		}
	}

	for _, id := range named {
		if !slices.ContainsFunc(s.Files, func(f File) bool { return f.ID == id }) {
			return nil, fault.Absent()
		}
	}

	if len(files) == 0 {
		return nil, fault.New(fault.InvalidState, "The session has no completed file. Finish an upload first.")
	}

	return files, nil
}

// Confirm makes a reservation permanent after the ingestion was created.
func (u Uploads) Confirm(ctx context.Context, account uuid.UUID, to Binding) error {
	return u.DB.InTx(ctx, func(tx postgres.Tx) error { return confirmFiles(ctx, tx, account, to) })
}

// Release removes a reservation whose ingestion was not created, so that the files can expire again.
func (u Uploads) Release(ctx context.Context, account uuid.UUID, to Binding) error {
	return u.DB.InTx(ctx, func(tx postgres.Tx) error { return releaseFiles(ctx, tx, account, to, u.Now().Add(u.Grace)) })
}

// Forsake marks the files of a deleted dataset for removal.
func (u Uploads) Forsake(ctx context.Context, account, dataset uuid.UUID) error {
	return u.DB.InTx(ctx, func(tx postgres.Tx) error { return forsakeFiles(ctx, tx, account, dataset, u.Now()) })
}

// Reserved returns reservations that were neither confirmed nor released in time, with the account of their files.
func (u Uploads) Reserved(ctx context.Context, limit int) (list map[Binding]uuid.UUID, err error) {
	err = u.DB.Do(ctx, func(q postgres.Querier) error {
		list, err = selectReserved(ctx, q, u.Now(), limit)

		return err
	})

	return list, err
}

// Kept returns which of the files that are bound to a dataset are still stored.
func (u Uploads) Kept(ctx context.Context, account, dataset uuid.UUID, files []uuid.UUID) (kept map[uuid.UUID]bool, err error) {
	err = u.DB.Do(ctx, func(q postgres.Querier) error {
		kept, err = selectKept(ctx, q, account, dataset, files)

		return err
	})

	return kept, err
}
