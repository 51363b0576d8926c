package ingest

import (
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"io"
	"io/fs"
	"os"
	"sync/atomic"
	"time"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/lake"
)

// followPause is how long an upload waits for more of the file that it follows.
const followPause = 20 * time.Millisecond

// storing stores the file that a sealed process writes, while it is written. The bytes that were stored are compared with the file in the end,
// when the process can no longer change it.
type storing struct {
	staged lake.Staged
	open   func() (*os.File, error) // opens the file that the process writes now

	file *os.File // the file that is followed; nil until it exists
	sent maphash.Hash
	read atomic.Int64    // bytes
	ctx  context.Context //nolint:containedctx // for the length of the upload

	written chan struct{} // closed when the process has written the file
	final   fs.FileInfo   // of the written file, if it could be opened; set before written is closed

	ended chan struct{} // closed at the end of the upload
	err   error         // set before ended is closed
}

var errOtherFile = errors.New("the sealed process wrote another file than the one that was followed")

// follow starts to store the n-th output while it is written. It does not follow rows of a body, which are few, nor outputs that are
// changed before they are stored.
func (w *working) follow(ctx context.Context, session *engine.Session, n int, name string) error {
	if w.i.kind != kindFiles || len(w.i.Key) > 0 || w.isTried {
		return nil
	}

	staged, err := w.stageOne(ctx, n)
	if err != nil {
		return err
	}

	s := &storing{
		staged: staged, open: func() (*os.File, error) { return session.Follow(name) }, ctx: ctx, written: make(chan struct{}), ended: make(chan struct{}),
	}
	w.storings[n] = s

	go func() {
		defer close(s.ended)

		s.err = fault.Try(func() error { return s.run(w.Lake) })
	}()

	return nil
}

func (s *storing) run(to *lake.Lake) (err error) {
	defer func() {
		if s.file != nil {
			_ = s.file.Close()
		}
	}()

	_, err = to.WriteStream(s.ctx, s.staged, s)

	return err
}

// followed says that the n-th output is written.
func (w *working) followed(n int) {
	s := w.storings[n]
	if s == nil {
		return
	}

	if file, err := s.open(); err == nil {
		s.final, _ = file.Stat()
		_ = file.Close()
	}

	close(s.written)
}

// Read returns what the sealed process has written, and waits for more until the file is complete.
func (s *storing) Read(p []byte) (int, error) {
	for {
		complete := s.isWritten()

		n, err := s.readSome(p)
		if n > 0 || !errors.Is(err, io.EOF) {
			return n, err
		}

		if complete {
			return 0, s.check()
		}

		select {
		case <-s.ctx.Done():
			return 0, s.ctx.Err()
		case <-s.written:
		case <-time.After(followPause):
		}
	}
}

func (s *storing) isWritten() bool {
	select {
	case <-s.written:
		return true
	default:
		return false
	}
}

// readSome reads from the file, or returns io.EOF if there is nothing to read now.
func (s *storing) readSome(p []byte) (n int, err error) {
	if s.file == nil {
		if s.file, err = s.open(); errors.Is(err, fs.ErrNotExist) {
			return 0, io.EOF
		} else if err != nil {
			return 0, err
		}
	}

	n, err = s.file.Read(p)
	_, _ = s.sent.Write(p[:n]) // never fails
	s.read.Add(int64(n))

	return n, err
}

// check returns io.EOF if the file that was read is the one that was written in the end.
func (s *storing) check() error {
	if s.file == nil || s.final == nil {
		return errOtherFile
	}

	if info, err := s.file.Stat(); err != nil || !os.SameFile(info, s.final) {
		return errOtherFile
	}

	return io.EOF
}

// finishStoring waits until the n-th output is stored. It reports whether exactly the bytes of the file at path are stored. If not, the
// caller stores the file: the sealed process may have begun a second time, or the store may have failed.
func (w *working) finishStoring(ctx context.Context, n int, path string) (same bool, err error) {
	s := w.storings[n]
	if s == nil {
		return false, nil
	}

	file, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer file.Close()

	info, err := file.Stat()
	if err != nil {
		return false, err
	}

	if err := w.tellWhile(ctx, n, s.ended, func() int64 { return s.read.Load() }, info.Size()); err != nil {
		return false, err
	}

	if s.err != nil || s.read.Load() != info.Size() {
		return false, context.Cause(ctx)
	}

	var taken maphash.Hash
	taken.SetSeed(s.sent.Seed())

	_, err = io.Copy(&taken, file)

	return err == nil && taken.Sum64() == s.sent.Sum64(), err
}

// writeOne stores the n-th output, which was not stored while it was written.
func (w *working) writeOne(ctx context.Context, n int, staged lake.Staged, path string) (lake.Staged, error) {
	info, err := os.Stat(path)
	if err != nil {
		return staged, err
	}

	var (
		written = staged
		sent    atomic.Int64
		ended   = make(chan struct{})
	)

	writing, cancel := context.WithCancel(ctx)
	defer cancel()

	go func() {
		defer close(ended)

		err = fault.Try(func() (err error) {
			written, err = w.Lake.WriteCounted(writing, staged, path, w.columns, &sent)

			return err
		})
	}()

	stopped := w.tellWhile(ctx, n, ended, func() int64 { return sent.Load() / readTwice }, info.Size())
	if stopped != nil {
		cancel()
	}

	<-ended

	return written, cmp.Or(stopped, err)
}

// readTwice is how often a stored file is read: for the signature, and to be sent.
const readTwice = 2

// tellWhile records how much of the n-th output is stored, until it has ended or the ingestion is stopped.
func (w *working) tellWhile(ctx context.Context, n int, ended <-chan struct{}, done func() int64, size int64) error {
	for before := w.i.BytesDone; ; {
		select {
		case <-ended:
			return nil
		case <-time.After(tellEvery):
			w.i.BytesDone = before + int64(float64(w.size(n))*min(float64(done())/float64(max(size, 1)), 1))

			// Continue if the database does not answer now.
			if err := w.tell(ctx, phaseStoring); job.Over(err) {
				return err
			}
		}
	}
}

// endStorings ends the uploads that still run.
func (w *working) endStorings(stop context.CancelCauseFunc) {
	stop(nil)

	for _, s := range w.storings {
		if s != nil {
			<-s.ended
		}
	}
}
