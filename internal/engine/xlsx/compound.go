package xlsx

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
)

// Signs that files begin with.
const (
	Magic         = "PK\x03\x04"
	CompoundMagic = "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
)

// RefuseCompound says what a file of the old kind is: a workbook with a password is one too.
func RefuseCompound(path string) error {
	const (
		headerSize  = 512
		sizeAt      = 30 // the power of two that a sector has
		directoryAt = 48 // its sector
		looked      = 4096
	)

	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()

	header := make([]byte, headerSize)
	if _, err := io.ReadFull(file, header); err != nil {
		return invalid("The file is an old Office document that is truncated.")
	}

	sector := int64(1) << min(binary.LittleEndian.Uint16(header[sizeAt:]), 16)
	directory, _ := io.ReadAll(io.NewSectionReader(file, (int64(binary.LittleEndian.Uint32(header[directoryAt:]))+1)*sector, looked))

	switch {
	case bytes.Contains(directory, wide("EncryptedPackage")):
		return invalid("The workbook has a password. Save it without one.")
	case bytes.Contains(directory, wide("Workbook")), bytes.Contains(directory, wide("Book")):
		return invalid("The file is a workbook of the old kind (.xls). Save it as .xlsx.")
	default:
		return invalid("The file is an old Office document. Send .xlsx, CSV, TSV, JSON, NDJSON or Parquet.")
	}
}

// wide is a text in UTF-16.
func wide(text string) (wide []byte) {
	for _, c := range []byte(text) {
		wide = append(wide, c, 0)
	}

	return wide
}
