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

// Uploads keeps sessions in PostgreSQL and bytes in the store.
type Uploads struct {
	DB    *postgres.DB
	Store *blob.Store
	Now   func() time.Time

	MaxOpenSessions int           // of an account at once
	MaxOpenBytes    int64         // declared in them
	MaxFile         int64         // of one file
	Grace           time.Duration // between an end and the removal of bytes
}

// Status is that of a session or of a file.
type Status string

const (
	Preparing Status = "preparing"
	Completed Status = "completed"
	Aborted   Status = "aborted"
)

const (
	sessionTime  = 24 * time.Hour     // then it is aborted by the service
	unboundTime  = 7 * 24 * time.Hour // then a completed file that nobody loaded is removed
	urlTime      = time.Hour
	leastPart    = 8 << 20
	maxParts     = 10_000 // of one file, and in one answer
	maxNameBytes = 255
	storeCalls   = 8 // at once, for one request
)

// Session is a set of files that are uploaded together.
type Session struct {
	Account   uuid.UUID
	ID        uuid.UUID
	Status    Status
	CreatedAt time.Time
	ExpiresAt time.Time
	Files     []File
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

// parts is how many parts the file has.
func (f File) parts() int { return int((f.Size + f.PartSize - 1) / f.PartSize) }

// partLength is how long a part is: all alike, and the last one the rest.
func (f File) partLength(number int) int64 {
	return min(f.PartSize, f.Size-int64(number-1)*f.PartSize)
}

// NewFile is a file that somebody wants to upload.
type NewFile struct {
	Name string
	Size int64
}

// Prepare begins a session.
//
// Faults: ValidationFailed, PayloadTooLarge, RateLimited, Forbidden, Unavailable. After Unavailable no session
// is open: what was begun is aborted, and the key can be used again.
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

// insertTx records the session, or returns the one that the same request recorded before.
func (u Uploads) insertTx(ctx context.Context, tx postgres.Tx, who auth.Principal, session Session, once auth.Once) (Session, error) {
	// One at a time, so that the limits on what is open hold.
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

	if err := u.checkOpen(ctx, tx, session); err != nil {
		return Session{}, err
	}

	if err := insertSession(ctx, tx, session); err != nil {
		return Session{}, err
	}

	return session, audit.WriteTx(ctx, tx, who.Audit(who.Account, session.CreatedAt, "upload.prepare", session.audit()))
}

func (u Uploads) checkOpen(ctx context.Context, tx postgres.Tx, session Session) error {
	sessions, bytes, err := countOpen(ctx, tx, session.Account)
	if err != nil {
		return err
	}

	for _, file := range session.Files {
		bytes += file.Size
	}

	if sessions < u.MaxOpenSessions && bytes <= u.MaxOpenBytes {
		return nil
	}

	e := fault.New(fault.RateLimited, fmt.Sprintf(
		"At most %d upload sessions with %d bytes can be open at once. Finish or abort some.", u.MaxOpenSessions, u.MaxOpenBytes))
	e.RetryAfter = time.Minute

	return e
}

// draft applies the rules to a request.
func (u Uploads) draft(who auth.Principal, files []NewFile) (Session, error) {
	now := u.now()
	session := Session{
		Account: who.Account, ID: uuid.Must(uuid.NewV7()), Status: Preparing, CreatedAt: now, ExpiresAt: now.Add(sessionTime),
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
			subs = append(subs, fault.Sub{Code: field + "size", Message: fmt.Sprintf("must be at most %d", u.MaxFile)})
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
		return Session{}, fault.New(fault.PayloadTooLarge, fmt.Sprintf("These files have %d parts; one answer has %d at most. Use several sessions.", parts, maxParts))
	default:
		return session, nil
	}
}

// partSize is 8 MiB, and more, in whole MiB, where a file would have too many parts.
func partSize(size int64) int64 {
	const mebibyte = 1 << 20

	needed := (size + maxParts - 1) / maxParts

	return max(leastPart, (needed+mebibyte-1)/mebibyte*mebibyte)
}

func checkFilename(name string) string {
	switch {
	case name == "" || len(name) > maxNameBytes:
		return fmt.Sprintf("must have 1 to %d bytes", maxNameBytes)
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
				return u.Store.AbortUpload(ctx, file.Key, id) // a repeat of the request was first
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

// discard takes back a session whose uploads could not be begun: the caller is told that nothing happened.
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

// abandonTx aborts what is open of a session; the cleaner removes what the store may have of it.
func (u Uploads) abandonTx(ctx context.Context, tx postgres.Tx, session Session) error {
	if err := updateFiles(ctx, tx, session, uuid.Nil, u.now(), u.now().Add(u.Grace)); err != nil {
		return err
	}

	return updateSession(ctx, tx, session, Aborted)
}

// URL is a presigned address for one part.
type URL struct {
	Number int
	URL    string
	Size   int64
}

// URLs signs addresses for parts of a file, all of them if none are named.
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

// Renew signs addresses for parts of a file that is still open.
//
// Faults: NotFound, InvalidState, ValidationFailed.
func (u Uploads) Renew(ctx context.Context, who auth.Principal, session, file uuid.UUID, numbers []int) ([]URL, error) {
	found, err := u.open(ctx, who, session, file)
	if err != nil {
		return nil, err
	}

	return u.URLs(ctx, found, numbers...)
}

// Get returns a session of the caller's.
func (u Uploads) Get(ctx context.Context, who auth.Principal, id uuid.UUID) (session Session, err error) {
	err = u.DB.Do(ctx, func(q postgres.Querier) error {
		session, err = u.load(ctx, q, who, id)

		return err
	})

	return session, err
}

// Parts returns what the store has of each file of a session, in their order: nothing of one that is not
// open any more.
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

// load returns a session of the caller's. To a restricted token it looks absent.
func (u Uploads) load(ctx context.Context, q postgres.Querier, who auth.Principal, id uuid.UUID) (Session, error) {
	if who.Token != nil && who.Token.Restricted {
		return Session{}, fault.Absent()
	}

	found, err := selectSession(ctx, q, who.Account, id)
	if err != nil {
		return Session{}, err
	}

	if found == nil {
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

// own returns a file of the caller's, with its session, to somebody who may upload.
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

	return File{}, fault.Absent()
}

func (s Session) audit() audit.Target { return audit.Target{Kind: "upload", ID: s.ID.String()} }

func (u Uploads) now() time.Time { return u.Now().UTC().Truncate(time.Millisecond) }

func mayUpload(who auth.Principal) error {
	switch {
	case who.Token != nil && who.Token.Restricted:
		return fault.New(fault.Forbidden, "A restricted token cannot upload files: it could not see them.")
	case auth.Editor.Exceeds(who.Ceiling()):
		return fault.New(fault.Forbidden, "The token in use allows viewer at most.")
	default:
		return nil
	}
}
