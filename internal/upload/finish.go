package upload

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// Finished is the status of a file and of its session.
type Finished struct {
	Session Status
	File    Status
}

// Parts are the parts of a file as the caller has uploaded them.
type Parts struct {
	UploadID string
	Key      string
	Sent     []SentPart
}

// SentPart is a part with the ETag that the store returned to the caller.
type SentPart struct {
	Number int
	ETag   string
}

// Finish assembles a file. The caller's parts must be those that the store has. A repeated call returns the same
// result.
//
// Faults: NotFound, Forbidden, ValidationFailed naming a part that is missing, has the wrong size or another ETag,
// InvalidState for a file that was aborted, Unavailable.
func (u Uploads) Finish(ctx context.Context, who auth.Principal, session, file uuid.UUID, parts Parts) (Finished, error) {
	found, wanted, err := u.own(ctx, who, session, file)

	switch {
	case err != nil:
		return Finished{}, err
	case wanted.UploadID != parts.UploadID || wanted.Key != parts.Key:
		return Finished{}, fault.InvalidFields(
			fault.Sub{Code: "uploadId", Message: "uploadId and key must be those that prepare returned for this file"})
	case wanted.Status == Completed:
		return Finished{Session: found.Status, File: Completed}, nil
	case wanted.Status == Aborted:
		return Finished{}, fault.New(fault.InvalidState, "The file was aborted.")
	}

	// A client that disconnects must not stop the work. The store drops the parts when it assembles the file. If the work stopped
	// before the file is recorded, the client would find no parts and send the file again.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTime)
	defer cancel()

	if err := u.assemble(ctx, wanted, parts.Sent); err != nil {
		return u.afterRace(ctx, who, session, file, err)
	}

	return u.record(ctx, who, found, wanted)
}

// finishTime is how long a file may take to be assembled and recorded after its client disconnected.
const finishTime = time.Minute

// afterRace returns the result if the file could not be assembled: another request may have finished or aborted it in
// the meantime.
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
		return Finished{}, fault.Wrap(cause, fault.InvalidState, "The parts changed while the file was being completed. Check which parts are uploaded, and finish again.")
	default:
		return Finished{}, cause
	}
}

// assemble creates the object. While another request does so, the store may list parts that are being removed, so a
// failed check of the parts is repeated once.
func (u Uploads) assemble(ctx context.Context, file File, sent []SentPart) error {
	err := u.tryAssemble(ctx, file, sent)
	if !fault.Is(err, fault.ValidationFailed) && !fault.Is(err, fault.Conflict) {
		return err
	}

	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(assembleTime / 20):
		return u.tryAssemble(ctx, file, sent)
	}
}

// tryAssemble creates the object once. It also succeeds if the object already exists, from a request whose response
// was lost or that runs at the same time.
func (u Uploads) tryAssemble(ctx context.Context, file File, sent []SentPart) error {
	stored, err := u.Store.ListParts(ctx, file.Key, file.UploadID)
	if err == nil {
		if err := checkParts(file, stored, sent); err != nil {
			return err
		}

		err = u.Store.CompleteUpload(ctx, file.Key, file.UploadID, stored, file.Size)
	}

	if err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}

	return u.checkObject(ctx, file)
}

// checkParts compares the parts in the store with the declared size of the file and with the parts that the caller
// has sent. A part that was overwritten in between has another ETag, so the caller does not finish a file with bytes
// that it did not send.
func checkParts(file File, stored []blob.UploadedPart, sent []SentPart) error {
	var subs []fault.Sub

	report := func(code, format string, args ...any) {
		subs = append(subs, fault.Sub{Code: code, Message: fmt.Sprintf(format, args...)})
	}

	there := map[int]blob.UploadedPart{}
	for _, part := range stored {
		there[part.Number] = part
	}

	listed := map[int]int{} // index in sent, by number

	for i, part := range sent {
		if part.Number > file.parts() {
			report(fmt.Sprintf("parts.%d.partNumber", i), "the file has %d parts", file.parts())
		} else if _, twice := listed[part.Number]; twice {
			report(fmt.Sprintf("parts.%d.partNumber", i), "part %d is listed twice", part.Number)
		}

		listed[part.Number] = i
	}

	for number := 1; number <= file.parts(); number++ {
		part, uploaded := there[number]
		i, isListed := listed[number]
		delete(there, number)

		switch {
		case !uploaded:
			report("parts", "part %d has not been uploaded", number)
		case part.Size != file.partLength(number):
			report("parts", "part %d has %d bytes instead of %d", number, part.Size, file.partLength(number))
		case !isListed:
			report("parts", "part %d is not listed", number)
		case !sameETag(sent[i].ETag, part.ETag):
			report(fmt.Sprintf("parts.%d.etag", i), "is not the ETag of part %d in the object store; upload the part again and send the ETag of the response", number)
		}
	}

	for _, number := range slices.Sorted(maps.Keys(there)) {
		report("parts", "part %d was uploaded, but the file has %d parts", number, file.parts())
	}

	if len(subs) > maxSubs {
		subs = append(subs[:maxSubs], fault.Sub{Code: "parts", Message: fmt.Sprintf("and %d more", len(subs)-maxSubs)})
	}

	if len(subs) > 0 {
		return fault.InvalidFields(subs...)
	}

	return nil
}

// sameETag compares without quotes, which clients of the store often remove.
func sameETag(a, b string) bool { return strings.Trim(a, `"`) == strings.Trim(b, `"`) }

// assembleTime is how long a store may take to show an object that it has assembled.
const assembleTime = 2 * time.Second

// maxSubs limits the number of messages about a file with thousands of missing parts.
const maxSubs = 20

// checkObject checks the object, and retries for up to assembleTime. While another request assembles the object, the
// store may have neither the multipart upload nor the object.
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
		return fault.New(fault.InvalidState, "The uploaded file is no longer in the object store. Prepare the upload again and send the whole file.")
	case err != nil:
		return err
	case object.Size != file.Size:
		return fault.New(fault.InvalidState, fmt.Sprintf("The uploaded file has %d bytes instead of %d. Prepare the upload again and send the whole file.", object.Size, file.Size))
	default:
		return nil
	}
}

// record completes the file and, with its last file, the session. If another request has completed the file, record
// changes nothing. A file that was aborted in the meantime stays aborted, and the cleanup removes its object.
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

// settleTx sets the status of a session that follows from the status of its files.
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

// Abort aborts a session or, if file is given, only that file. Finished files can no longer be used, and their bytes
// are removed after Grace. A repeated call returns the same result.
//
// Faults: NotFound, Forbidden, InvalidState for a session that is completed.
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

// forget aborts the multipart uploads in the store, so that their URLs stop working at once. If the store does not
// answer, the cleanup does it later.
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

	_ = calls.Wait() // the rows record what remains to be done
}

// forgetTime is how long a response waits for the store to abort uploads.
const forgetTime = 2 * time.Second
