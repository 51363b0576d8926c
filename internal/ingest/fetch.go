package ingest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/cespare/xxhash/v2"
	"github.com/google/uuid"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// mount mounts the files in the session. The uploaded files are empty until they are fetched.
func (w *working) mount(session *engine.Session, body *os.File) (sources []engine.Source, err error) {
	if body != nil {
		return []engine.Source{{Name: "body", Format: w.i.format}}, session.Mount(body.Name(), "body")
	}

	for n, p := range w.papers { // their rows, after the files themselves
		source := engine.Source{Name: fmt.Sprintf("records-%d", n), Format: engine.FormatText}
		if err := session.Mount(p.path, source.Name); err != nil {
			return nil, err
		}

		sources = append(sources, source)
	}

	if w.papers != nil {
		return sources, nil
	}

	w.contents = make([]fileContent, len(w.i.Files))

	for n, f := range w.i.Files {
		source := engine.Source{Name: fmt.Sprintf("file-%d", n), Size: f.Size}
		path := filepath.Join(w.dir, source.Name)

		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o400)
		if err != nil {
			return nil, err
		}

		w.arriving = append(w.arriving, file)

		if err := session.Mount(path, source.Name); err != nil {
			return nil, err
		}

		sources = append(sources, source)
	}

	return sources, nil
}

func (w *working) closeArriving() {
	for _, file := range w.arriving {
		_ = file.Close() // the files that were fetched are closed already
	}
}

// inspect inspects the files while they are fetched. The sealed process waits for the bytes that it needs next.
func (w *working) inspect(ctx context.Context, session *engine.Session, sources []engine.Source) (engine.Inspection, error) {
	session.Progress = func(p engine.Progress) {
		if w.isFetched.Load() { // before, the bytes that are fetched are the progress
			w.hear(ctx, phaseInspecting, p, 0, 0, w.i.BytesTotal)
		}
	}

	var err error
	if session.Fields, err = w.fields(ctx); err != nil {
		return engine.Inspection{}, err
	}

	inspect := session.Inspect
	if w.i.DryRun {
		inspect = session.Preview
	}

	if w.papers != nil {
		found, err := inspect(sources, w.options(), w.Bounds)

		return found, w.named(err)
	}

	reading, cancel := context.WithCancel(ctx)
	defer cancel()

	fetched := make(chan error, 1)

	go func() {
		err := fault.Try(func() error { return w.fetchAll(ctx, reading) })
		if err != nil && reading.Err() == nil {
			w.stop(err) // the sealed process waits for the rest
		}

		fetched <- err
	}()

	found, err := inspect(sources, w.i.Options, w.Bounds)
	if err != nil {
		cancel()
	}

	return found, cmp.Or(w.named(err), <-fetched)
}

// named adds the name of the file to its failure, if there are several.
func (w *working) named(err error) error {
	failed, ok := errors.AsType[*engine.FileError](err)
	if !ok || (len(w.i.Files) < 2 && w.part == nil) || failed.Source < 1 || failed.Source > len(w.i.Files) { // the number comes from the sealed process
		return err
	}

	said := *failed
	said.Message = w.i.Files[failed.Source-1].Name + ": " + said.Message

	return &said
}

// fields returns the names that the definition of the dataset has for columns.
func (w *working) fields(ctx context.Context) (names []string, err error) {
	err = w.DB.Do(ctx, func(q postgres.Querier) error {
		found, err := w.Catalog.Definitions(ctx, q, w.i.Account, []uuid.UUID{w.i.Dataset})
		names = slices.Sorted(maps.Keys(found[w.i.Dataset].SchemaDefinition))

		return err
	})

	return names, err
}

// fetchAll fetches the files in their order until reading ends. The progress is recorded with ctx: if a transaction were broken off, the
// failure of the inspection would have to wait for its locks.
func (w *working) fetchAll(ctx, reading context.Context) (err error) {
	for n, f := range w.i.Files {
		if w.contents[n].digest, err = w.fetch(ctx, reading, f, w.arriving[n]); err != nil {
			return err
		}
	}

	err = w.tell(ctx, phaseInspecting)
	w.isFetched.Store(err == nil)

	return err
}

// fetch copies an uploaded file to the local disk, and returns the digest of its bytes.
func (w *working) fetch(ctx, reading context.Context, f File, to *os.File) (digest []byte, err error) {
	const blockSize = 1 << 20

	from, err := w.Store.Read(reading, f.Key, 0, -1)
	if err != nil {
		return nil, err
	}
	defer from.Close()

	hash := w.i.digest()

	size, err := io.CopyBuffer(io.MultiWriter(&counting{w: w, ctx: ctx, to: w.Folder.Writer(to)}, hash), from, make([]byte, blockSize))
	if err != nil {
		return nil, err
	}

	if size != f.Size {
		return nil, fault.Wrap(fmt.Errorf("%d bytes instead of %d", size, f.Size), fault.Internal, "The stored file differs from the upload.")
	}

	return hash.Sum(nil), to.Close()
}

// digest returns the hash function for the files of the ingestion. Documents that a model reads get a SHA-256, because corrections and answers
// of models refer to it. For other files the digest only supports the doubt that a file was loaded before. SHA-256 would take a tenth of the
// processor time of a load.
func (i Ingestion) digest() hash.Hash {
	if i.isExtracted() {
		return sha256.New()
	}

	return xxhash.New()
}

// counting is a writer that records the received bytes as progress.
type counting struct {
	w   *working
	ctx context.Context //nolint:containedctx // for the length of one copy
	to  io.Writer
}

func (c *counting) Write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	c.w.i.BytesDone += int64(n)

	if err == nil {
		err = c.w.tell(c.ctx, phaseFetching)
	}

	return n, err
}
