package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
)

// Saver writes the result of a completed long statement to one file. It reads several pieces in parallel, resumes interrupted
// ones, and verifies the checksum of each. The file appears when it is complete. Until then the content is in Path.part, and
// Path.part.json lists the pieces in it, so that a later Saver with the same path can resume.
type Saver struct {
	Client *Client
	Path   string
	// Parallel is the number of pieces that are read at once; 0 means 4.
	Parallel int
	// Progress is called with the bytes that are written and the size of the file, by several goroutines. It may be nil.
	Progress func(done, total int64)
}

// saved is what Path.part.json contains.
type saved struct {
	Statement uuid.UUID `json:"statement"`
	For       string    `json:"for,omitempty"` // what the statement was started for, in the words of the user of Saver
	Pieces    []int32   `json:"pieces"`        // those that are written
}

// filePiece is a piece with its place in the file.
type filePiece struct {
	number     int32
	bytes      int64
	sum        string
	head, tail int64
	offset     int64
}

func (p filePiece) size() int64 { return p.bytes - p.head - p.tail }

const (
	savers       = 4
	saveAttempts = 8 // without any new byte
)

// Pending returns the statement that an earlier Saver with this path has begun for the same purpose; uuid.Nil if there is none.
func (s *Saver) Pending(purpose string) uuid.UUID {
	state, err := s.state()
	if err != nil || state.For != purpose {
		return uuid.Nil
	}

	return state.Statement
}

// Begin notes the statement whose result is going to be saved, so that Pending finds it if this process ends.
func (s *Saver) Begin(statement uuid.UUID, purpose string) error {
	return s.note(saved{Statement: statement, For: purpose})
}

// Forget removes what an earlier Saver with this path has left.
func (s *Saver) Forget() error {
	var problems []error

	for _, path := range []string{s.part(), s.part() + ".json"} {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			problems = append(problems, err)
		}
	}

	return errors.Join(problems...)
}

func (s *Saver) part() string { return s.Path + ".part" }

func (s *Saver) state() (state saved, err error) {
	content, err := os.ReadFile(s.part() + ".json")
	if err == nil {
		err = json.Unmarshal(content, &state)
	}

	return state, err
}

func (s *Saver) note(state saved) error {
	content, err := json.Marshal(state)
	if err != nil {
		return err
	}

	next := s.part() + ".json.new"
	if err := os.WriteFile(next, content, 0o600); err != nil {
		return err
	}

	return os.Rename(next, s.part()+".json")
}

// Save writes the file and returns its size.
func (s *Saver) Save(ctx context.Context, statement uuid.UUID) (int64, error) {
	list, err := Read[PieceList](s.Client.ListPieces(ctx, statement))
	if err != nil {
		return 0, err
	}

	pieces, total := placed(list)

	state, err := s.state()
	if err != nil || state.Statement != statement {
		state = saved{Statement: statement}
	}

	how := os.O_CREATE | os.O_RDWR
	if len(state.Pieces) == 0 { // what is there belongs to another statement
		how |= os.O_TRUNC
	}

	file, err := os.OpenFile(s.part(), how, 0o644) //nolint:gosec // a file of the user, as any other
	if err != nil {
		return 0, err
	}

	if info, err := file.Stat(); err != nil || info.Size() < reach(pieces, state.Pieces) {
		state.Pieces = nil // the file is not the one that was noted
	}

	w := &saving{Saver: s, statement: statement, file: file, state: state, total: total}

	if err := errors.Join(w.all(ctx, pieces), file.Close()); err != nil {
		return 0, err
	}

	if err := os.Rename(s.part(), s.Path); err != nil {
		return 0, err
	}

	return total, s.Forget()
}

// placed returns the pieces with their places in the file, and the size of the file.
func placed(list PieceList) (pieces []filePiece, total int64) {
	for _, p := range list.Data {
		pieces = append(pieces, filePiece{number: p.Number, bytes: p.Bytes, sum: p.Sha256, head: p.HeadBytes, tail: p.TailBytes})
	}

	if list.End != nil {
		pieces = append(pieces, filePiece{number: list.End.Number, bytes: list.End.Bytes, sum: list.End.Sha256})
	}

	for i := range pieces {
		pieces[i].offset = total
		total += pieces[i].size()
	}

	return pieces, total
}

// reach returns how far the noted pieces reach.
func reach(pieces []filePiece, noted []int32) (end int64) {
	for _, p := range pieces {
		if slices.Contains(noted, p.number) {
			end = max(end, p.offset+p.size())
		}
	}

	return end
}

// saving is a file that is being written.
type saving struct {
	*Saver

	statement uuid.UUID
	file      *os.File
	total     int64

	mu    sync.Mutex
	state saved
	done  int64
}

func (w *saving) all(ctx context.Context, pieces []filePiece) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	var readers sync.WaitGroup

	next := make(chan filePiece)

	parallel := w.Parallel
	if parallel == 0 {
		parallel = savers
	}

	for range parallel {
		readers.Go(func() {
			for p := range next {
				if err := w.piece(ctx, p); err != nil {
					cancel(err)
				}
			}
		})
	}

	for _, p := range pieces {
		if slices.Contains(w.state.Pieces, p.number) {
			w.add(p.size())

			continue
		}

		select {
		case next <- p:
		case <-ctx.Done():
		}
	}

	close(next)
	readers.Wait()

	return context.Cause(ctx)
}

func (w *saving) add(bytes int64) {
	w.mu.Lock()
	w.done += bytes
	done := w.done
	w.mu.Unlock()

	if w.Progress != nil {
		w.Progress(done, w.total)
	}
}

// piece writes a piece to its place. It asks for a new address when a connection breaks, and goes on where it broke off.
func (w *saving) piece(ctx context.Context, p filePiece) error {
	to := &pieceWriter{w: w, p: p, hash: sha256.New()}

	for attempt := 1; to.read < p.bytes; attempt++ {
		before := to.read
		err := w.request(ctx, p, to)

		if to.read > before {
			attempt = 0
		}

		if failed := (*Error)(nil); errors.As(err, &failed) && failed.Status < http.StatusInternalServerError && failed.ErrorCode != "" {
			return err // the service refused it; a store has no such code
		}

		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, errLocal):
			return err
		case to.read == p.bytes:
		case attempt >= saveAttempts:
			return fmt.Errorf("piece %d of the result cannot be read: %w", p.number, errors.Join(err, io.ErrUnexpectedEOF))
		case err != nil:
			select {
			case <-ctx.Done():
			case <-time.After(time.Duration(attempt) * 250 * time.Millisecond):
			}
		}
	}

	if sum := hex.EncodeToString(to.hash.Sum(nil)); sum != p.sum {
		return fmt.Errorf("piece %d of the result is damaged: its checksum is %s, not %s", p.number, sum, p.sum)
	}

	w.mu.Lock()
	defer w.mu.Unlock()

	w.state.Pieces = append(w.state.Pieces, p.number)

	return w.note(w.state)
}

func (w *saving) request(ctx context.Context, p filePiece, to *pieceWriter) error {
	from := to.read

	response, err := Check(w.Client.GetPiece(ctx, w.statement, p.number, func(_ context.Context, request *http.Request) error {
		if from > 0 {
			request.Header.Set("Range", "bytes="+strconv.FormatInt(from, 10)+"-")
		}

		return nil
	}))
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()

	if from > 0 && response.StatusCode != http.StatusPartialContent {
		return fmt.Errorf("the object store responded with %d to a request for a part of an object", response.StatusCode)
	}

	_, err = io.Copy(to, io.LimitReader(response.Body, p.bytes-from))

	return err
}

// errLocal marks an error of the file.
var errLocal = errors.New("the file cannot be written")

// pieceWriter writes the body of a piece to its place in the file.
type pieceWriter struct {
	w    *saving
	p    filePiece
	read int64 // bytes of the piece so far
	hash hash.Hash
}

func (t *pieceWriter) Write(content []byte) (int, error) {
	first, last := max(t.read, t.p.head), min(t.read+int64(len(content)), t.p.bytes-t.p.tail)
	if first < last {
		if _, err := t.w.file.WriteAt(content[first-t.read:last-t.read], t.p.offset+first-t.p.head); err != nil {
			return 0, errors.Join(errLocal, err)
		}

		t.w.add(last - first)
	}

	t.hash.Write(content)
	t.read += int64(len(content))

	return len(content), nil
}
