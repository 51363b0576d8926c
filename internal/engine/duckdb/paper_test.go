package duckdb

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/sandbox"
)

const papers = "papers"

// preparePapers is Program for many inspections in one process, because each process compiles PDFium.
func preparePapers(folder sandbox.Folder) (sandbox.Serve, error) {
	if err := os.Mkdir(filepath.Join(folder.Tmp, spill), 0o700); err != nil {
		return nil, err
	}

	db, err := open(folder.In, folder.Tmp)
	if err != nil {
		return nil, err
	}

	return func(conn *sandbox.Conn) error {
		p := &program{db: db, in: folder.In, tmp: folder.Tmp, bounds: bounds()}
		if err := db.limit(1<<30, 1); err != nil {
			return err
		}

		for {
			var one engine.Source
			if err := conn.Receive(&one); err != nil {
				return err
			}

			found, err := p.inspectOne(one)

			answer := engine.Answer{Inspection: &found}
			if fault, ok := errors.AsType[*failure](err); ok {
				answer = engine.Answer{Failure: &engine.FileError{Code: fault.code, Message: fault.message}}
			} else if err != nil {
				return err
			}

			if err := conn.Send(answer); err != nil {
				return err
			}
		}
	}, nil
}

func (p *program) inspectOne(one engine.Source) (found engine.Inspection, err error) {
	s, err := p.describe(one)
	if err != nil {
		return found, err
	}

	for _, c := range s.columns {
		found.Columns = append(found.Columns, engine.Column{Name: c.name, Type: cmp.Or(c.kind, engine.Varchar)})
	}

	p.sources = []*source{s}

	return found, p.preview(&found)
}
