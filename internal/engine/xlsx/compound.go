package xlsx

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
)

// The first bytes of workbooks and of old Office documents.
const (
	Magic         = "PK\x03\x04"
	CompoundMagic = "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
)

// RefuseCompound returns an error that says what kind of old Office document the file is. A workbook with a password is
// also such a file.
func RefuseCompound(path string) error {
	const (
		headerSize  = 512
		sizeAt      = 30 // offset of the sector size, stored as a power of two
		directoryAt = 48 // offset of the number of the directory's sector
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
		return invalid("The file is a workbook in the old format (.xls). Save it as .xlsx.")
	default:
		return invalid("The file is an old Office document. Save a text as .docx or PDF, and a table as .xlsx or CSV.")
	}
}

// wide returns an ASCII text in UTF-16LE.
func wide(text string) (wide []byte) {
	for _, c := range []byte(text) {
		wide = append(wide, c, 0)
	}

	return wide
}
