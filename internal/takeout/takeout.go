// Package takeout copies all that a user has into a folder, for operators whom that person has asked for it.
//
//	Begin                                          Copy                        Finish
//	tables of one moment, list of files ──▶ objects of the store ──▶ about.json
//
// Invariants:
//   - All rows are of one moment of the database.
//   - Secrets are left out: hashes of tokens, sealed secrets of connections and webhooks, what was answered once and is answered again.
//   - TestTables fails for a table of accounts that this package does not know, so a new table is a decision.
//   - The folder has about.json only if everything was copied.
package takeout

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"

	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

const (
	aboutFile  = "about.json"
	privateDir = 0o700
	longest    = 120 // characters of the name of a file
)

// About describes a complete folder.
type About struct {
	Username string           `json:"username"`
	Account  uuid.UUID        `json:"account"`
	TakenAt  time.Time        `json:"takenAt"`
	Tables   map[string]int64 `json:"tables"` // rows by table
	Files    int64            `json:"files"`
	Bytes    int64            `json:"bytes"`
	Missing  []string         `json:"missing"` // files that were removed while the others were copied
}

// File is an object that is copied.
type File struct {
	Path string // below the folder
	Key  string
	Size int64
}

// Takeout is a folder that is being filled.
type Takeout struct {
	About

	Listed []File

	root *os.Root
}

// Begin writes the rows of an account into a new folder, and lists its files. All statements of the database must see the same moment. The
// caller must close the takeout.
//
// Faults: Conflict if the folder is not empty.
func Begin(ctx context.Context, frozen *postgres.DB, folder string, about About) (t *Takeout, err error) {
	if err := os.MkdirAll(folder, privateDir); err != nil {
		return nil, err
	}

	if entries, err := os.ReadDir(folder); err != nil || len(entries) > 0 {
		return nil, errors.Join(err, fault.New(fault.Conflict, "The folder is not empty. Name a new one."))
	}

	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}

	t = &Takeout{About: about, root: root}
	t.Tables, t.Missing = map[string]int64{}, []string{}

	for _, one := range tables() {
		if err := t.table(ctx, frozen, one); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", one.name, err), root.Close())
		}
	}

	if err := t.list(ctx, frozen); err != nil {
		return nil, errors.Join(err, root.Close())
	}

	return t, nil
}

// Close closes the folder.
func (t *Takeout) Close() error { return t.root.Close() }

// table writes the rows of a table as lines of JSON.
func (t *Takeout) table(ctx context.Context, frozen *postgres.DB, one table) error {
	return t.write("tables/"+one.name+".jsonl", func(to io.Writer) error {
		return frozen.Do(ctx, func(q postgres.Querier) error {
			return each(ctx, q, one.statement, t.Account, func(row string) error {
				t.Tables[one.name]++

				_, err := io.WriteString(to, row+"\n")

				return err
			})
		})
	})
}

// list finds the uploaded files, the current data files of all datasets, and the objects of runs.
func (t *Takeout) list(ctx context.Context, frozen *postgres.DB) error {
	return frozen.Do(ctx, func(q postgres.Querier) (err error) {
		t.Listed, err = selectFiles(ctx, q, t.Account)

		return err
	})
}

// Copy copies the files. copied is called after each.
func (t *Takeout) Copy(ctx context.Context, from *blob.Store, copied func(size int64)) error {
	for _, one := range t.Listed {
		err := t.copy(ctx, from, one)

		switch {
		case fault.Is(err, fault.NotFound):
			t.Missing = append(t.Missing, one.Path)
		case err != nil:
			return fmt.Errorf("%s: %w", one.Path, err)
		default:
			t.Files++
			t.Bytes += one.Size
		}

		copied(one.Size)
	}

	return nil
}

func (t *Takeout) copy(ctx context.Context, from *blob.Store, one File) error {
	content, err := from.Read(ctx, one.Key, 0, -1)
	if err != nil {
		return err
	}
	defer content.Close()

	return t.write(one.Path, func(to io.Writer) error {
		size, err := io.Copy(to, content)
		if err == nil && size != one.Size {
			err = fmt.Errorf("it has %d bytes, and should have %d", size, one.Size)
		}

		return err
	})
}

// Finish writes about.json.
func (t *Takeout) Finish() error {
	return t.write(aboutFile, func(to io.Writer) error {
		encoder := json.NewEncoder(to)
		encoder.SetIndent("", "  ")

		return encoder.Encode(t.About)
	})
}

// write writes a file that only the operator can read.
func (t *Takeout) write(name string, fill func(to io.Writer) error) error {
	if err := t.root.MkdirAll(path.Dir(name), privateDir); err != nil {
		return err
	}

	file, err := t.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}

	buffer := bufio.NewWriterSize(file, 1<<18)

	err = fill(buffer)
	if err == nil {
		err = buffer.Flush()
	}

	if err == nil {
		err = file.Sync()
	}

	return errors.Join(err, file.Close())
}

// component turns a name that a person chose into a safe name of one file or folder.
func component(name string) string {
	name = strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\:*?"<>|`, r) || !unicode.IsPrint(r) {
			return '_'
		}

		return r
	}, name)

	if runes := []rune(name); len(runes) > longest {
		name = string(runes[:longest])
	}

	if strings.Trim(name, ".") == "" {
		return "_" + name
	}

	return name
}
