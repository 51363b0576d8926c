package upload

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// Finished is where a file and its session stand.
type Finished struct {
	Session Status
	File    Status
}

// Finish puts a file together from its parts, as the store has them. A repeat gives the same answer.
//
// Faults: NotFound, ValidationFailed naming a part that is missing or of the wrong size, InvalidState for a
// file that was aborted, Unavailable.
func (u Uploads) Finish(ctx context.Context, who auth.Principal, session, file uuid.UUID, uploadID, key string) (Finished, error) {
	found, wanted, err := u.own(ctx, who, session, file)

	switch {
	case err != nil:
		return Finished{}, err
	case wanted.UploadID != uploadID || wanted.Key != key:
		return Finished{}, fault.InvalidFields(
			fault.Sub{Code: "uploadId", Message: "uploadId and key must be those that prepare gave for this file"})
	case wanted.Status == Completed:
		return Finished{Session: found.Status, File: Completed}, nil
	case wanted.Status == Aborted:
		return Finished{}, fault.New(fault.InvalidState, "The file was aborted.")
	}

	if err := u.assemble(ctx, wanted); err != nil {
		return u.afterRace(ctx, who, session, file, err)
	}

	return u.record(ctx, who, found, wanted)
}

// afterRace explains why a file could not be put together: another request may have ended it meanwhile.
func (u Uploads) afterRace(ctx context.Context, who auth.Principal, session, file uuid.UUID, cause error) (Finished, error) {
	if !fault.Is(cause, fault.Conflict) && !fault.Is(cause, fault.InvalidState) {
		return Finished{}, cause
	}

	found, err := u.Get(ctx, who, session)
	if err != nil {
		return Finished{}, err
	}

	wanted, err := found.file(file)

	switch {
	case err != nil:
		return Finished{}, err
	case wanted.Status == Completed:
		return Finished{Session: found.Status, File: Completed}, nil
	case wanted.Status == Aborted:
		return Finished{}, fault.New(fault.InvalidState, "The file was aborted.")
	case fault.Is(cause, fault.Conflict):
		return Finished{}, fault.Wrap(cause, fault.InvalidState, "The parts changed while the file was put together. Look at what is there, and finish again.")
	default:
		return Finished{}, cause
	}
}

// assemble makes the object. While another request does so the store may show parts that are going, so
// parts that do not fit are looked at twice.
func (u Uploads) assemble(ctx context.Context, file File) error {
	err := u.tryAssemble(ctx, file)
	if !fault.Is(err, fault.ValidationFailed) && !fault.Is(err, fault.Conflict) {
		return err
	}

	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(assembleTime / 20):
		return u.tryAssemble(ctx, file)
	}
}

// tryAssemble makes the object once. That it was made before, by a request whose answer was lost or that
// runs at the same moment, is as good.
func (u Uploads) tryAssemble(ctx context.Context, file File) error {
	parts, err := u.Store.ListParts(ctx, file.Key, file.UploadID)
	if err == nil {
		if err := checkParts(file, parts); err != nil {
			return err
		}

		err = u.Store.CompleteUpload(ctx, file.Key, file.UploadID, parts, file.Size)
	}

	if err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}

	return u.checkObject(ctx, file)
}

// checkParts compares what the store has with what was declared.
func checkParts(file File, parts []blob.UploadedPart) error {
	var subs []fault.Sub

	sizes := map[int]int64{}
	for _, part := range parts {
		sizes[part.Number] = part.Size
	}

	for number := 1; number <= file.parts(); number++ {
		size, there := sizes[number]
		delete(sizes, number)

		switch {
		case !there:
			subs = append(subs, fault.Sub{Code: fmt.Sprintf("parts.%d", number), Message: "has not been uploaded"})
		case size != file.partLength(number):
			subs = append(subs, fault.Sub{Code: fmt.Sprintf("parts.%d", number), Message: fmt.Sprintf("has %d bytes, and should have %d", size, file.partLength(number))})
		}
	}

	for number := range sizes {
		subs = append(subs, fault.Sub{Code: fmt.Sprintf("parts.%d", number), Message: "is not a part of this file"})
	}

	if len(subs) > maxSubs {
		subs = append(subs[:maxSubs], fault.Sub{Code: "parts", Message: fmt.Sprintf("and %d more", len(subs)-maxSubs)})
	}

	if len(subs) > 0 {
		return fault.InvalidFields(subs...)
	}

	return nil
}

// assembleTime is how long a store may take to show an object that it has put together.
const assembleTime = 2 * time.Second

// maxSubs keeps the answer about a file with thousands of missing parts readable.
const maxSubs = 20

// checkObject looks for the object, and for a moment again: while another request puts it together the
// store may have neither the upload any more nor the object yet.
func (u Uploads) checkObject(ctx context.Context, file File) error {
	object, err := u.Store.Head(ctx, file.Key)

	for began := time.Now(); fault.Is(err, fault.NotFound) && time.Since(began) < assembleTime; object, err = u.Store.Head(ctx, file.Key) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(assembleTime / 20):
		}
	}

	switch {
	case fault.Is(err, fault.NotFound):
		return fault.New(fault.InvalidState, "The upload is no longer in the object store. Prepare it anew.")
	case err != nil:
		return err
	case object.Size != file.Size:
		return fault.New(fault.InvalidState, fmt.Sprintf("The object has %d bytes, and should have %d. Prepare it anew.", object.Size, file.Size))
	default:
		return nil
	}
}

// record completes the file, and with the last one the session. Of two that finish at once the second finds
// it done; one that was aborted meanwhile stays so, and its object goes.
func (u Uploads) record(ctx context.Context, who auth.Principal, session Session, file File) (done Finished, err error) {
	err = u.DB.InTx(ctx, func(tx postgres.Tx) error {
		if err := lockSession(ctx, tx, session); err != nil {
			return err
		}

		current, err := u.load(ctx, tx, who, session.ID)
		if err != nil {
			return err
		}

		now, err := current.file(file.ID)
		if err != nil {
			return err
		}

		if now.Status == Aborted {
			return fault.New(fault.InvalidState, "The file was aborted.")
		}

		done = Finished{Session: current.Status, File: Completed}
		if now.Status == Completed {
			return nil
		}

		if err := completeFile(ctx, tx, current, file, u.now(), u.now().Add(unboundTime)); err != nil {
			return err
		}

		if done.Session, err = u.settleTx(ctx, tx, current); err != nil {
			return err
		}

		entry := who.Audit(session.Account, u.now(), "upload.finish", session.audit())
		entry.Detail = file.ID.String()

		return audit.WriteTx(ctx, tx, entry)
	})

	return done, err
}

// settleTx gives a session the status that follows from its files.
func (u Uploads) settleTx(ctx context.Context, tx postgres.Tx, session Session) (Status, error) {
	open, completed, err := countFiles(ctx, tx, session)
	if err != nil {
		return "", err
	}

	status := Preparing

	switch {
	case open > 0:
		return status, nil
	case completed > 0:
		status = Completed
	default:
		status = Aborted
	}

	return status, updateSession(ctx, tx, session, status)
}

// Abort ends a session, or with a file only that one. Finished files are withdrawn at once, and their bytes
// go after the grace. A repeat gives the same answer.
//
// Faults: NotFound, InvalidState for a session that is completed.
func (u Uploads) Abort(ctx context.Context, who auth.Principal, id, file uuid.UUID) (status Status, err error) {
	var session Session

	err = u.DB.InTx(ctx, func(tx postgres.Tx) error {
		if err := lockSession(ctx, tx, Session{Account: who.Account, ID: id}); err != nil {
			return err
		}

		if session, err = u.load(ctx, tx, who, id); err != nil {
			return err
		}

		if err := mayUpload(who); err != nil {
			return err
		}

		if file != uuid.Nil {
			if _, err := session.file(file); err != nil {
				return err
			}
		}

		status = session.Status

		switch status {
		case Aborted:
			return nil
		case Completed:
			return fault.New(fault.InvalidState, "The session is completed.")
		default:
			return u.abortTx(ctx, tx, who, session, file, &status)
		}
	})
	if err != nil {
		return "", err
	}

	u.forget(ctx, session, file)

	return status, nil
}

func (u Uploads) abortTx(ctx context.Context, tx postgres.Tx, who auth.Principal, session Session, file uuid.UUID, status *Status) error {
	if err := updateFiles(ctx, tx, session, file, u.now(), u.now().Add(u.Grace)); err != nil {
		return err
	}

	settled, err := u.settleTx(ctx, tx, session)
	if err != nil {
		return err
	}

	*status = settled

	entry := who.Audit(session.Account, u.now(), "upload.abort", session.audit())
	if file != uuid.Nil {
		entry.Detail = file.String()
	}

	return audit.WriteTx(ctx, tx, entry)
}

// forget ends the multipart uploads at the store, so that their addresses stop working at once. If it does
// not answer now, the cleaner does it.
func (u Uploads) forget(ctx context.Context, session Session, only uuid.UUID) {
	ctx, cancel := context.WithTimeout(ctx, forgetTime)
	defer cancel()

	var calls errgroup.Group

	calls.SetLimit(storeCalls)

	for _, file := range session.Files {
		if file.Status == Preparing && file.UploadID != "" && (only == uuid.Nil || only == file.ID) {
			calls.Go(func() error {
				return fault.Try(func() error { return u.Store.AbortUpload(ctx, file.Key, file.UploadID) })
			})
		}
	}

	_ = calls.Wait() // the rows say that it is to be done
}

// forgetTime is how long an answer waits for the store to forget.
const forgetTime = 2 * time.Second
