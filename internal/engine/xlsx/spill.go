package xlsx

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"slices"
)

// spill writes the rows after the first skip rows, without empty rows, to a temporary file. The position of the table
// and the merged cells are known only after the last row.
func (b *book) spill(s sheet, to io.Writer, skip int) (*layout, []area, error) {
	var (
		found   layout
		written int64
		rows    = bufio.NewWriterSize(to, 1<<20)
	)

	merges, err := b.readSheet(s, func(row int, cells []cell) error {
		if row <= skip || !slices.ContainsFunc(cells, cell.isFilled) {
			return nil
		}

		for _, c := range cells {
			written += int64(len(c.text)) + 2
		}

		if written > b.bounds.Unpacked {
			return exceeded("The sheet has more than %d bytes.", b.bounds.Unpacked)
		}

		found.add(row, cells)

		return writeRow(rows, row, cells)
	})

	return &found, merges, errors.Join(err, rows.Flush())
}

func writeRow(to *bufio.Writer, row int, cells []cell) error {
	head := binary.AppendVarint(nil, int64(row))
	head = binary.AppendVarint(head, int64(len(cells)))
	_, err := to.Write(head)

	for _, c := range cells {
		head = binary.AppendVarint(head[:0], int64(c.column))
		head = append(head, byte(c.kind))
		head = binary.AppendVarint(head, int64(len(c.text)))
		_, e1 := to.Write(head)
		_, e2 := to.WriteString(c.text)
		err = errors.Join(err, e1, e2)
	}

	return err
}

// readRow reads a row that writeRow wrote. It returns io.EOF after the last row.
func readRow(from *bufio.Reader, into []cell) (row int, cells []cell, err error) {
	number, err := binary.ReadVarint(from)
	if err != nil {
		return 0, nil, err
	}

	count, err := binary.ReadVarint(from)
	cells = into[:0]

	for range count {
		column, e1 := binary.ReadVarint(from)
		k, e2 := from.ReadByte()
		size, e3 := binary.ReadVarint(from)

		if err = errors.Join(err, e1, e2, e3); err != nil {
			break
		}

		text := make([]byte, size)
		_, err = io.ReadFull(from, text)
		cells = append(cells, cell{int(column), kind(k), string(text)})
	}

	return int(number), cells, err
}
