package upload

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// Uploads stores sessions in PostgreSQL and bytes in the object store.
type Uploads struct {
	DB    *postgres.DB
	Store *blob.Store
	Now   func() time.Time

	// Room returns a fault if an account would exceed its limit by storing that many additional bytes. Nil means no limit.
	Room func(ctx context.Context, tx postgres.Tx, who auth.Principal, account uuid.UUID, more int64) error

	MaxOpenSessions int           // of one account
	MaxOpenBytes    int64         // total declared size of the files in them
	MaxFile         int64         // bytes of one file
	Grace           time.Duration // time between the end of an upload and the removal of its bytes
}

// Status is the status of a session or of a file.
type Status string

const (
	Preparing Status = "preparing"
	Completed Status = "completed"
	Aborted   Status = "aborted"
)

const (
	sessionTime  = 24 * time.Hour     // after which the service aborts a session
	unboundTime  = 7 * 24 * time.Hour // after which a completed file that was not loaded is removed
	urlTime      = time.Hour
	leastPart    = 8 << 20
	maxParts     = 10_000 // of one file, and in one response
	MaxNameBytes = 255    // of a filename
	storeCalls   = 8      // concurrent calls for one request
)

// Session is a set of files that are uploaded together.
type Session struct {
	Account   uuid.UUID
	ID        uuid.UUID
	Status    Status
	CreatedAt time.Time
	ExpiresAt time.Time
	Files     []File

	token uuid.UUID // API token that prepared it; uuid.Nil for a person who signed in
}

// reachedBy reports whether the caller's credential may use the session. A restricted token uses only the sessions that it
// prepared: a file of another one can be about anything.
func (s Session) reachedBy(who auth.Principal) bool {
	return who.Token == nil || !who.Token.Restricted || s.token == who.Token.ID
}

// File is one file of a session.
type File struct {
	ID          uuid.UUID
	Name        string
	Size        int64
	PartSize    int64
	Key         string
	UploadID    string
	Status      Status
	CompletedAt time.Time

	position int
}

// parts returns the number of parts of the file.
func (f File) parts() int { return int((f.Size + f.PartSize - 1) / f.PartSize) }

// partLength returns the size of a part: PartSize, or the rest for the last part.
func (f File) partLength(number int) int64 {
	return min(f.PartSize, f.Size-int64(number-1)*f.PartSize)
}

// NewFile is a file to upload.
type NewFile struct {
	Name string
	Size int64
}

// Prepare starts a session.
//
// Faults: ValidationFailed, PayloadTooLarge, LimitExceeded, RateLimited, Forbidden, Unavailable. After Unavailable no session is
// open: what was started is aborted, and the idempotency key can be used again.
func (u Uploads) Prepare(ctx context.Context, who auth.Principal, files []NewFile, once auth.Once) (session Session, err error) {
	if err := mayUpload(who); err != nil {
		return Session{}, err
	}

	if session, err = u.draft(who, files); err != nil {
		return Session{}, err
	}

	err = u.DB.InTx(ctx, func(tx postgres.Tx) error {
		session, err = u.insertTx(ctx, tx, who, session, once)

		return err
	})
	if err != nil {
		return Session{}, err
	}

	if session.Status != Preparing {
		return session, nil
	}

	if err := u.begin(ctx, &session); err != nil {
		return Session{}, u.discard(ctx, who, session, once, err)
	}

	return session, nil
}

// insertTx records the session, or returns the session that an earlier identical request recorded.
func (u Uploads) insertTx(ctx context.Context, tx postgres.Tx, who auth.Principal, session Session, once auth.Once) (Session, error) {
	// Serialise the requests of an account, so that the limits on open sessions hold.
	if err := lockUploads(ctx, tx, who.Account); err != nil {
		return Session{}, err
	}

	first, repeated, err := once.ClaimTx(ctx, tx, who.Account, who, session.ID, session.CreatedAt)
	if err != nil {
		return Session{}, err
	}

	if repeated {
		return u.load(ctx, tx, who, first)
	}

	if err := u.checkOpen(ctx, tx, who, session); err != nil {
		return Session{}, err
	}

	if err := insertSession(ctx, tx, session); err != nil {
		return Session{}, err
	}

	return session, audit.WriteTx(ctx, tx, who.Audit(who.Account, session.CreatedAt, "upload.prepare", session.audit()))
}

func (u Uploads) checkOpen(ctx context.Context, tx postgres.Tx, who auth.Principal, session Session) error {
	sessions, bytes, err := countOpen(ctx, tx, session.Account)
	if err != nil {
		return err
	}

	var more int64
	for _, file := range session.Files {
		more += file.Size
	}

	if sessions < u.MaxOpenSessions && bytes+more <= u.MaxOpenBytes {
		if u.Room == nil {
			return nil
		}

		return u.Room(ctx, tx, who, session.Account, more)
	}

	e := fault.New(fault.RateLimited, fmt.Sprintf(
		"At most %d upload sessions with %d bytes in total can be open. Finish or abort some.", u.MaxOpenSessions, u.MaxOpenBytes))
	e.RetryAfter = time.Minute

	return e
}

// draft checks a request and returns its session.
func (u Uploads) draft(who auth.Principal, files []NewFile) (Session, error) {
	now := u.now()
	session := Session{
		Account: who.Account, ID: uuid.Must(uuid.NewV7()), Status: Preparing, CreatedAt: now, ExpiresAt: now.Add(sessionTime),
	}
	if who.Token != nil {
		session.token = who.Token.ID
	}

	var (
		subs  []fault.Sub
		parts int
	)

	for i, want := range files {
		field := fmt.Sprintf("filesToUpload.%d.", i)

		if problem := checkFilename(want.Name); problem != "" {
			subs = append(subs, fault.Sub{Code: field + "filename", Message: problem})
		}

		if want.Size > u.MaxFile {
			subs = append(subs, fault.Sub{Code: field + "size", Message: fmt.Sprintf("must be at most %d bytes", u.MaxFile)})
		}

		file := File{
			ID: uuid.Must(uuid.NewV7()), Name: want.Name, Size: want.Size, PartSize: partSize(want.Size), Status: Preparing, position: i,
			Key: dayPrefix(now) + uuid.NewString(),
		}
		session.Files = append(session.Files, file)
		parts += file.parts()
	}

	switch {
	case len(subs) > 0:
		return Session{}, fault.InvalidFields(subs...)
	case parts > maxParts:
		return Session{}, fault.New(fault.PayloadTooLarge, fmt.Sprintf("These files have %d parts; one response can list %d at most. Use several sessions.", parts, maxParts))
	default:
		return session, nil
	}
}

// partSize returns 8 MiB, or more, in whole MiB, if a file would have too many parts.
func partSize(size int64) int64 {
	const mebibyte = 1 << 20

	needed := (size + maxParts - 1) / maxParts

	return max(leastPart, (needed+mebibyte-1)/mebibyte*mebibyte)
}

func checkFilename(name string) string {
	switch {
	case name == "" || len(name) > MaxNameBytes:
		return fmt.Sprintf("must have 1 to %d bytes", MaxNameBytes)
	case strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || (r >= 0x7f && r < 0xa0) }) || !utf8.ValidString(name):
		return "must not contain control characters"
	default:
		return ""
	}
}

// begin starts the multipart upload of each file that has none yet.
func (u Uploads) begin(ctx context.Context, session *Session) error {
	calls, ctx := errgroup.WithContext(ctx)
	calls.SetLimit(storeCalls)

	for i := range session.Files {
		file := &session.Files[i]
		if file.UploadID != "" || file.Status != Preparing {
			continue
		}

		calls.Go(func() (err error) {
			defer fault.Recover(&err)

			id, err := u.Store.CreateUpload(ctx, file.Key)
			if err != nil {
				return err
			}

			kept, err := u.keepUploadID(ctx, *session, *file, id)
			if err != nil {
				return err
			}

			file.UploadID = kept
			if kept != id {
				return u.Store.AbortUpload(ctx, file.Key, id) // a repetition of the request was faster
			}

			return nil
		})
	}

	return calls.Wait()
}

func (u Uploads) keepUploadID(ctx context.Context, session Session, file File, id string) (kept string, err error) {
	err = u.DB.Do(ctx, func(q postgres.Querier) error {
		kept, err = updateUploadID(ctx, q, session, file, id)

		return err
	})

	return kept, err
}

// discard aborts a session whose uploads could not be started, frees its idempotency key, and returns the cause.
func (u Uploads) discard(ctx context.Context, who auth.Principal, session Session, once auth.Once, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardTimeout)
	defer cancel()

	err := u.DB.InTx(ctx, func(tx postgres.Tx) error {
		if err := once.ForgetTx(ctx, tx, session.Account, who); err != nil {
			return err
		}

		return u.abandonTx(ctx, tx, session)
	})
	if err != nil {
		return err
	}

	return cause
}

const discardTimeout = 5 * time.Second

// abandonTx aborts the open files of a session. The cleanup removes what the store may have of them.
func (u Uploads) abandonTx(ctx context.Context, tx postgres.Tx, session Session) error {
	if err := updateFiles(ctx, tx, session, uuid.Nil, u.now(), u.now().Add(u.Grace)); err != nil {
		return err
	}

	return updateSession(ctx, tx, session, Aborted)
}

// URL is a presigned URL for one part.
type URL struct {
	Number int
	URL    string
	Size   int64
}

// URLs returns presigned URLs for parts of a file, for all parts if none are named.
func (u Uploads) URLs(ctx context.Context, file File, numbers ...int) ([]URL, error) {
	if len(numbers) == 0 {
		for number := range file.parts() {
			numbers = append(numbers, number+1)
		}
	}

	urls := make([]URL, 0, len(numbers))

	for _, number := range numbers {
		if number > file.parts() {
			return nil, fault.Invalid("partNumbers", fmt.Sprintf("the file has %d parts", file.parts()))
		}

		part := blob.Part{Key: file.Key, UploadID: file.UploadID, Number: number, Size: file.partLength(number)}

		address, err := u.Store.PresignPart(ctx, part, urlTime)
		if err != nil {
			return nil, err
		}

		urls = append(urls, URL{Number: number, URL: address, Size: part.Size})
	}

	return urls, nil
}

// Renew returns new presigned URLs for parts of a file that is not finished or aborted.
//
// Faults: NotFound, Forbidden, InvalidState, ValidationFailed.
func (u Uploads) Renew(ctx context.Context, who auth.Principal, session, file uuid.UUID, numbers []int) ([]URL, error) {
	found, err := u.open(ctx, who, session, file)
	if err != nil {
		return nil, err
	}

	return u.URLs(ctx, found, numbers...)
}

// Get returns a session of the caller.
func (u Uploads) Get(ctx context.Context, who auth.Principal, id uuid.UUID) (session Session, err error) {
	err = u.DB.Do(ctx, func(q postgres.Querier) error {
		session, err = u.load(ctx, q, who, id)

		return err
	})

	return session, err
}

// Parts returns the uploaded parts of each file of a session, in the order of the files, and none for a file that is
// finished or aborted.
func (u Uploads) Parts(ctx context.Context, session Session) ([][]blob.UploadedPart, error) {
	parts := make([][]blob.UploadedPart, len(session.Files))
	calls, ctx := errgroup.WithContext(ctx)
	calls.SetLimit(storeCalls)

	for i, file := range session.Files {
		if file.Status != Preparing || file.UploadID == "" {
			continue
		}

		calls.Go(func() (err error) {
			defer fault.Recover(&err)

			parts[i], err = u.Store.ListParts(ctx, file.Key, file.UploadID)
			if fault.Is(err, fault.NotFound) {
				return nil
			}

			return err
		})
	}

	return parts, calls.Wait()
}

// load returns a session of the caller. For a session that the caller's token does not reach it returns NotFound.
func (u Uploads) load(ctx context.Context, q postgres.Querier, who auth.Principal, id uuid.UUID) (Session, error) {
	found, err := selectSession(ctx, q, who.Account, id)
	if err != nil {
		return Session{}, err
	}

	if found == nil || !found.reachedBy(who) {
		return Session{}, fault.Absent()
	}

	return *found, nil
}

// open returns a file that can still be uploaded to.
func (u Uploads) open(ctx context.Context, who auth.Principal, session, file uuid.UUID) (File, error) {
	_, wanted, err := u.own(ctx, who, session, file)
	if err == nil && wanted.Status != Preparing {
		err = fault.New(fault.InvalidState, "The file is "+string(wanted.Status)+".")
	}

	return wanted, err
}

// own returns a file of the caller with its session. It fails if the caller may not upload.
func (u Uploads) own(ctx context.Context, who auth.Principal, session, file uuid.UUID) (Session, File, error) {
	found, err := u.Get(ctx, who, session)
	if err != nil {
		return Session{}, File{}, err
	}

	if err := mayUpload(who); err != nil {
		return Session{}, File{}, err
	}

	wanted, err := found.file(file)

	return found, wanted, err
}

func (s Session) file(id uuid.UUID) (File, error) {
	for _, file := range s.Files {
		if file.ID == id {
			return file, nil
		}
	}

	return File{}, fault.New(fault.NotFound, "The upload session has no file with this id. GET /file-upload/{sessionId} lists its files.")
}

func (s Session) audit() audit.Target { return audit.Target{Kind: "upload", ID: s.ID.String()} }

func (u Uploads) now() time.Time { return u.Now().UTC().Truncate(time.Millisecond) }

func mayUpload(who auth.Principal) error {
	if auth.Editor.Exceeds(who.Ceiling()) {
		return fault.New(fault.Forbidden, "The token in use allows viewer at most.")
	}

	return nil
}
