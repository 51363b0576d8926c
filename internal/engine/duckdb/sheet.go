package duckdb

import (
	"bytes"
	"errors"
	"os"
	"slices"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/engine/xlsx"
)

func (f *plainFile) isOffice() bool {
	return bytes.HasPrefix(f.head, []byte(xlsx.Magic)) || bytes.HasPrefix(f.head, []byte(xlsx.CompoundMagic))
}

// fromSheet makes text of a workbook.
func (f *plainFile) fromSheet(to string, options engine.Options, bounds engine.Bounds) error {
	if bytes.HasPrefix(f.head, []byte(xlsx.CompoundMagic)) {
		return ours(xlsx.RefuseCompound(f.path))
	}

	file, err := os.Open(f.path)
	if err != nil {
		return err
	}
	defer file.Close()

	table, err := xlsx.Write(sheetFile{file, f.read}, f.size, to, options, bounds)
	if err != nil {
		return ours(err)
	}

	f.format, f.sheet = engine.FormatText, &table

	return f.become(to)
}

// sheetFile tells how much of the file was read.
type sheetFile struct {
	*os.File

	read *byteCount
}

// ReadAt counts more than once: what follows takes far less time than this.
func (f sheetFile) ReadAt(p []byte, at int64) (int, error) {
	const passes = 3

	n, err := f.File.ReadAt(p, at)
	if f.read != nil {
		f.read.Add(int64(passes * n))
	}

	return n, err
}

func ours(err error) error {
	if said, ok := errors.AsType[*engine.FileError](err); ok {
		return &failure{said.Code, said.Message}
	}

	return err
}

// onlyTexts takes the candidates away that are no dates, where the sheet has nothing but texts in a column.
func (s *source) onlyTexts(trials []trial, list []candidate) {
	if s.file.sheet == nil {
		return
	}

	for i := range trials {
		if s.file.sheet.IsText(i, s.dialect.header) {
			trials[i].signed = false
			trials[i].alive = slices.DeleteFunc(trials[i].alive, func(c int) bool { return list[c].kind != engine.Date && list[c].kind != engine.Timestamp })
		}
	}
}
