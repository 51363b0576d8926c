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

// fromSheet converts a workbook to text.
func (f *plainFile) fromSheet(to string, options engine.Options, bounds engine.Bounds) error {
	if err := f.arrive(); err != nil {
		return err
	}

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

// sheetFile counts the bytes that are read from the file, for the progress.
type sheetFile struct {
	*os.File

	read *byteCount
}

// ReadAt counts each byte as several passes, because the steps after it take far less time than reading the workbook.
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
		return &failure{code: said.Code, message: said.Message, doubt: said.Doubt}
	}

	return err
}

// onlyTexts removes all candidates except dates and timestamps for columns in which the sheet contains only texts.
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
