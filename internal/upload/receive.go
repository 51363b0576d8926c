package upload

import (
	"context"
	"errors"
	"io"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// ExpectTx starts a session with one file that the service receives itself, by Receive. The file has no multipart upload.
//
// Faults: ValidationFailed, PayloadTooLarge, LimitExceeded, RateLimited, Forbidden.
func (u Uploads) ExpectTx(ctx context.Context, tx postgres.Tx, who auth.Principal, file NewFile) (Session, error) {
	if err := mayUpload(who); err != nil {
		return Session{}, err
	}

	session, err := u.draft(who, []NewFile{file})
	if err != nil {
		return Session{}, err
	}

	return u.insertTx(ctx, tx, who, session, auth.Once{})
}

// Receive stores the content of the file of a session that ExpectTx started. It can be repeated; if the file is completed, it reads nothing. Errors of content are
// returned unchanged.
//
// Faults: NotFound, InvalidState if the session was aborted or has expired, Conflict if the content has another size, Unavailable.
func (u Uploads) Receive(ctx context.Context, who auth.Principal, id uuid.UUID, content io.Reader) error {
	session, err := u.Get(ctx, who, id)
	if err != nil {
		return err
	}

	file := session.Files[0]

	switch file.Status {
	case Completed:
		return nil
	case Aborted:
		return fault.New(fault.InvalidState, "The file was aborted.")
	case Preparing:
	}

	if _, err := u.Store.Write(ctx, file.Key, &sized{content, file.Size}); err != nil {
		return err
	}

	_, err = u.record(ctx, who, session, file)

	return err
}

// sized fails if the content has another size.
type sized struct {
	content io.Reader
	left    int64
}

func (s *sized) Read(p []byte) (int, error) {
	n, err := s.content.Read(p)
	s.left -= int64(n)

	if s.left < 0 || s.left > 0 && errors.Is(err, io.EOF) {
		return 0, fault.New(fault.Conflict, "The content does not have the size that was expected.")
	}

	return n, err
}
