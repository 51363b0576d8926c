package backup

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/fault"
)

const (
	atOnce       = 8
	batchObjects = 500
	batchBytes   = 1 << 30
)

// Object is a line of the list of objects.
type Object struct {
	Key    string `json:"key"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256,omitempty"` // of a copy; empty for an object that is not in the folder
	Lost   bool   `json:"lost,omitempty"`   // it was missing, although the installation still listed it
}

// Source is where Fetch copies objects from.
type Source struct {
	Store *blob.Store
	// Listed returns whether the installation still lists an object that is missing in the store.
	Listed func(ctx context.Context, key string) (bool, error)
	Now    func() time.Time
}

// Fetch copies the objects that are not in the folder yet, and completes the backup.
func (f *Folder) Fetch(ctx context.Context, from Source, progress *Progress) error {
	about := f.about
	about.Removed, about.Lost = 0, 0

	copied, err := f.resume(func(o Object) {
		progress.add(1, o.Size)
		about.count(o)
	})
	if err != nil {
		return err
	}
	defer func() { _ = copied.Close() }()

	if err := f.batches(listFile, progress.objects, func(batch []Object) error {
		if err := each(ctx, batch, func(ctx context.Context, o *Object) error {
			err := f.fetch(ctx, from, o)
			progress.add(1, o.Size)

			return err
		}); err != nil {
			return err
		}

		for _, o := range batch {
			about.count(o)
		}

		return appendLines(copied, batch)
	}); err != nil {
		return err
	}

	about.CompletedAt = new(from.Now().UTC().Truncate(time.Millisecond))

	return f.writeAbout(about)
}

func (a *About) count(o Object) {
	switch {
	case o.Lost:
		a.Lost++
	case o.SHA256 == "":
		a.Removed++
	}
}

// resume reads what is copied, cuts off a line that was not written completely, and returns the file to append to.
func (f *Folder) resume(found func(o Object)) (*os.File, error) {
	file, err := os.OpenFile(f.join(copiedFile), os.O_CREATE|os.O_RDWR, fileMode)
	if err != nil {
		return nil, err
	}

	var whole int64

	for lines := bufio.NewReader(file); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}

		var o Object
		if err := errors.Join(err, json.Unmarshal(line, &o)); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", f.join(copiedFile), err), file.Close())
		}

		whole += int64(len(line))

		found(o)
	}

	_, err = file.Seek(whole, io.SeekStart)
	if err := errors.Join(err, file.Truncate(whole)); err != nil {
		return nil, errors.Join(err, file.Close())
	}

	return file, nil
}

func appendLines(to *os.File, batch []Object) error {
	var lines bytes.Buffer

	encoder := json.NewEncoder(&lines)

	for _, o := range batch {
		if err := encoder.Encode(o); err != nil {
			return err
		}
	}

	_, err := to.Write(lines.Bytes())

	return errors.Join(err, to.Sync())
}

// batches calls do with the objects of a file after the first skip ones. It ends a batch early if its objects are large.
func (f *Folder) batches(name string, skip int64, do func(batch []Object) error) error {
	file, err := os.Open(f.join(name))
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()

	var (
		batch []Object
		bytes int64
	)

	for lines := json.NewDecoder(bufio.NewReader(file)); ; {
		var o Object

		err := lines.Decode(&o)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("%s: %w", f.join(name), err)
		}

		if err == nil && skip > 0 {
			skip--

			continue
		}

		if err == nil {
			batch = append(batch, o)
			bytes += o.Size
		}

		if len(batch) > 0 && (err != nil || len(batch) == batchObjects || bytes >= batchBytes) {
			if err := do(batch); err != nil {
				return err
			}

			batch, bytes = batch[:0], 0
		}

		if err != nil {
			return nil
		}
	}
}

// each calls do for several objects at once.
func each(ctx context.Context, batch []Object, do func(ctx context.Context, o *Object) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)

	for i := range batch {
		group.Go(func() (err error) {
			defer fault.Recover(&err)

			return do(ctx, &batch[i])
		})
	}

	return group.Wait()
}

// fetch copies an object and sets its checksum. An object that is missing stays without one.
func (f *Folder) fetch(ctx context.Context, from Source, o *Object) error {
	path := f.object(o.Key)
	if err := os.MkdirAll(filepath.Dir(path), folderMode); err != nil {
		return err
	}

	sum := sha256.New()

	size, err := f.download(ctx, from.Store, o.Key, path, sum)
	if fault.Is(err, fault.NotFound) || (err == nil && size != o.Size) {
		o.Lost, err = from.Listed(ctx, o.Key)

		return err
	}

	if err != nil {
		return fmt.Errorf("copying %s: %w", o.Key, err)
	}

	o.SHA256 = hex.EncodeToString(sum.Sum(nil))

	return nil
}

func (f *Folder) download(ctx context.Context, store *blob.Store, key, path string, sum hash.Hash) (size int64, err error) {
	object, err := store.Read(ctx, key, 0, -1)
	if err != nil {
		return 0, err
	}
	defer func() { _ = object.Close() }()

	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, fileMode)
	if err != nil {
		return 0, err
	}

	size, err = io.Copy(io.MultiWriter(file, sum), object)

	return size, errors.Join(err, file.Sync(), file.Close())
}

func (f *Folder) object(key string) string {
	return filepath.Join(f.path, objectsPath, filepath.FromSlash(key))
}

// Each calls do with the objects of a complete backup, several at once. Objects that are not in the folder are left out.
func (f *Folder) Each(ctx context.Context, do func(ctx context.Context, o Object) error) error {
	return f.batches(copiedFile, 0, func(batch []Object) error {
		return each(ctx, batch, func(ctx context.Context, o *Object) error {
			if o.SHA256 == "" {
				return nil
			}

			return do(ctx, *o)
		})
	})
}

// Open returns the content of an object. Reading fails at the end if the content is not what the backup wrote.
func (f *Folder) Open(o Object) (io.ReadCloser, error) {
	if !filepath.IsLocal(filepath.FromSlash(o.Key)) {
		return nil, damaged(f.join(copiedFile))
	}

	file, err := os.Open(f.object(o.Key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, damaged(f.object(o.Key))
	}

	if err != nil {
		return nil, err
	}

	return &checked{File: file, sum: sha256.New(), want: o.SHA256}, nil
}

// Read returns the content of an object by its key. NotFound if the folder does not have it.
func (f *Folder) Read(key string) ([]byte, error) {
	content, err := os.ReadFile(f.object(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Absent()
	}

	return content, err
}

type checked struct {
	*os.File

	sum  hash.Hash
	want string
}

func (c *checked) Read(p []byte) (int, error) {
	n, err := c.File.Read(p)
	_, _ = c.sum.Write(p[:n])

	if errors.Is(err, io.EOF) && hex.EncodeToString(c.sum.Sum(nil)) != c.want {
		err = damaged(c.Name())
	}

	return n, err
}

// WriteTo would bypass Read.
func (c *checked) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, struct{ io.Reader }{c})
}
