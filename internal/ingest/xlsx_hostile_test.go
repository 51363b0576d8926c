package ingest_test

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/xuri/excelize/v2"
)

func otherOfficeCases() []corpusCase {
	refused := func(contains string) string {
		return `{"fault": {"code": "INVALID_FILE", "contains": "` + contains + `"}}`
	}

	other := func(name, about, contains string, parts map[string]string) corpusCase {
		return made(name, about, refused(contains), func(tb testing.TB) []byte {
			tb.Helper()

			return zipped(tb, parts)
		})
	}

	office := func(target string) string {
		return `<Relationships><Relationship Id="a" Type="x/officeDocument" Target="` + target + `"/></Relationships>`
	}

	return []corpusCase{
		made("password", "A workbook with a password.", refused("password"), func(tb testing.TB) []byte {
			tb.Helper()

			book := excelize.NewFile()
			defer book.Close()

			var written bytes.Buffer

			require.NoError(tb, book.Write(&written, excelize.Options{Password: "secret"}))

			return written.Bytes()
		}),
		made("xls", "A workbook of the old kind.", refused(".xls)"), fixed(compound("Workbook"))),
		made("doc", "A document of the old kind.", refused("old Office document"), fixed(compound("WordDocument"))),
		other("xlsb", "A binary workbook.", ".xlsb", map[string]string{"_rels/.rels": office("xl/workbook.bin"), "xl/workbook.bin": "\x83\x01\x00"}),
		other("ods", "OpenDocument.", ".ods", map[string]string{"mimetype": "application/vnd.oasis.opendocument.spreadsheet", "content.xml": "<a/>"}),
		other("docx", "A document without text.", "empty", map[string]string{"_rels/.rels": office("word/document.xml"), "word/document.xml": "<a/>"}),
		other("pptx", "Slides.", "neither a workbook", map[string]string{"_rels/.rels": office("ppt/presentation.xml"), "ppt/presentation.xml": "<a/>"}),
		other("zip", "An archive of something else.", "zip archive", map[string]string{"data.csv": "a,b\n1,2\n"}),
		made("gzip-of-xlsx", "Packed once more.", plainRead, func(tb testing.TB) []byte {
			tb.Helper()

			return gzipped(tb, zipped(tb, parts(plainRows())))
		}),
	}
}

// compound returns the beginning of a file in the old binary format, with a directory of one entry.
func compound(entry string) []byte {
	file := make([]byte, 3*512)
	copy(file, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")
	file[30], file[48] = 9, 1

	for i := range len(entry) {
		file[2*512+2*i] = entry[i]
	}

	return file
}

func hostileBookCases() []corpusCase {
	const broken = `{"fault": {"code": "INVALID_FILE", "contains": "broken"}}`

	list := func(contains string) string {
		return `{"fault": {"code": "INVALID_FILE", "contains": "` + contains + `"}}`
	}

	entities := `<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>`
	external := `<!DOCTYPE a [<!ENTITY a SYSTEM "file:///etc/passwd">]>`
	relations := func(content string) string { return `<Relationships>` + content + `</Relationships>` }

	return []corpusCase{
		made("zip-bomb", "A few hundred kilobytes that unpack to more than is allowed.", limitExceeded, func(tb testing.TB) []byte {
			tb.Helper()

			return bomb(tb, "xl/worksheets/sheet1.xml", "<worksheet><sheetData>", `<row spans="`+strings.Repeat("1", 4000)+`"/>`, 320<<20)
		}),
		made("zip-bomb-lies", "A sheet that says it is small.", broken, lyingBook),
		made("zip-bomb-texts", "The same in the shared texts: they are kept in memory.", limitExceeded, func(tb testing.TB) []byte {
			tb.Helper()

			return bomb(tb, "xl/sharedStrings.xml", "<sst>", "<si><t>"+strings.Repeat("a", 4000)+"</t></si>", 300<<20)
		}),
		made("zip-bomb-cell", "A cell that never ends.", lineTooLong, func(tb testing.TB) []byte {
			tb.Helper()

			return bomb(tb, "xl/worksheets/sheet1.xml", `<worksheet><sheetData><row r="1"><c t="inlineStr"><is><t>`, strings.Repeat("a", 4000), 40<<20)
		}),
		made("zip-bomb-merged", "One long text in very many merged cells.", limitExceeded, func(tb testing.TB) []byte {
			tb.Helper()

			var sheet strings.Builder

			sheet.WriteString(`<sheetData>` + row(1, textCell("A1", strings.Repeat("a", 30_000))+numberCell("B1", "1")))

			for i := 2; i < 20_000; i++ {
				sheet.WriteString(`<row><c/><c><v>1</v></c></row>`)
			}

			return zipped(tb, parts(sheet.String()+`</sheetData><mergeCells><mergeCell ref="A1:A1048576"/></mergeCells>`))
		}),
		withPart("billion-laughs", "Entities of entities in the shared texts.", list("document type"), "xl/sharedStrings.xml", entities+`<sst><si><t>&b;</t></si></sst>`, plainRows()),
		made("billion-laughs-sheet", "The same in the sheet.", list("document type"), func(tb testing.TB) []byte {
			tb.Helper()

			all := parts(plainRows())
			all["xl/worksheets/sheet1.xml"] = entities + `<worksheet><sheetData><row><c t="str"><v>&b;</v></c></row></sheetData></worksheet>`

			return zipped(tb, all)
		}),
		byHand("entity-undefined", "An entity that nobody defined.", broken, row(1, textCell("A1", "&b;"))),
		withPart("entity-external", "An entity that is a file.", list("document type"), "xl/workbook.xml", external+`<workbook>&a;</workbook>`, plainRows()),
		withPart("relation-external", "A sheet that is elsewhere.", broken, "xl/_rels/workbook.xml.rels",
			relations(`<Relationship Id="rId1" Type="x/worksheet" TargetMode="External" Target="file:///etc/passwd"/>`), plainRows()),
		withPart("relation-up", "A relation that leads out of the archive.", broken, "xl/_rels/workbook.xml.rels",
			relations(`<Relationship Id="rId1" Type="x/worksheet" Target="../../../../etc/passwd"/>`), plainRows()),
		withPart("relation-absent", "A sheet without a relation.", broken, "xl/_rels/workbook.xml.rels", relations(""), plainRows()),
		withPart("relation-cyclic", "A sheet that is the workbook itself.", broken, "xl/_rels/workbook.xml.rels",
			relations(`<Relationship Id="rId1" Type="x/worksheet" Target="workbook.xml"/>`), plainRows()),
		withPart("no-relations", "Nothing says where the workbook is.", broken, "_rels/.rels", relations(""), plainRows()),
		byHand("dimension", "A dimension that is a lie.", `{"columns": [{"name": "column_1", "type": "bigint"}], "rows": [[5]]}`,
			`<dimension ref="A1:XFD1048576"/><sheetData>`+row(1, numberCell("A1", "5"))+`</sheetData>`),
		byHand("far-away", "One cell in the last row.", `{"columns": [{"name": "column_1", "type": "bigint"}], "rows": [[5]]}`, row(1048576, numberCell("XFD1048576", "5"))),
		byHand("far-away-too", "A stray cell far from the table.", list("A1:B3 and XFD1048576"), plainRows()+row(1048576, numberCell("XFD1048576", "5"))),
		byHand("row-beyond", "A row that no sheet has.", broken, row(1048577, numberCell("A1048577", "5"))),
		byHand("column-beyond", "A column that no sheet has.", broken, row(1, numberCell("XFE1", "5"))),
		byHand("rows-unordered", "Rows in no order.", list("row 1 comes after row 3"), row(3, numberCell("A3", "5"))+row(1, numberCell("A1", "5"))),
		byHand("cells-unordered", "Cells in no order within a row.", plainRead, row(1, textCell("B1", "name")+textCell("A1", "id"))+row(2, textCell("B2", "Ann")+numberCell("A2", "1"))+row(3, numberCell("A3", "2")+textCell("B3", "Bob"))),
		byHand("cells-twice", "A cell that is there twice.", list("A1 occurs twice"), row(1, numberCell("A1", "5")+numberCell("A1", "6"))),
		byHand("cell-elsewhere", "A cell in the row of another.", broken, row(1, numberCell("A2", "5"))),
		byHand("string-index", "A shared text that is not there.", list("has 5 texts"), row(1, `<c r="A1" t="s"><v>5</v></c>`)),
		byHand("string-index-negative", "A shared text before the first.", broken, row(1, `<c r="A1" t="s"><v>-1</v></c>`)),
		byHand("date-broken", "A date that would be two cells.", list("type"), row(1, `<c r="A1" t="d"><v>2026-11-15,"</v></c>`)),
		byHand("number-broken", "A number that is none.", list("not a number"), row(1, numberCell("A1", "0x1F"))),
		byHand("sheet-truncated", "A sheet that ends too early.", broken, `<sheetData>`+plainRows()+`<row>`),
		byHand("nested", "Elements in elements.", broken, strings.Repeat("<a>", 100_000)),
		byHand("merged-overlap", "Merged cells that overlap.", list("overlap"), `<sheetData>`+plainRows()+`</sheetData><mergeCells><mergeCell ref="A1:B1"/><mergeCell ref="B1:B2"/></mergeCells>`),
		byHand("merged-all", "All cells are one.", plainRead, `<sheetData>`+plainRows()+`</sheetData><mergeCells><mergeCell ref="A2:A1048576"/></mergeCells>`),
		byHand("wide", "More columns than are allowed.", tooManyColumns, wideRow(2001)),
		made("part-twice", "A part that is there twice.", list("twice"), func(tb testing.TB) []byte {
			tb.Helper()

			var packed bytes.Buffer

			writer := zip.NewWriter(&packed)

			for _, name := range []string{"xl/workbook.xml", "XL/Workbook.xml"} {
				_, err := writer.Create(name)
				require.NoError(tb, err)
			}

			require.NoError(tb, writer.Close())

			return packed.Bytes()
		}),
		made("truncated", "A download that broke off.", list("truncated"), func(tb testing.TB) []byte {
			tb.Helper()

			packed := zipped(tb, parts(plainRows()))

			return packed[:len(packed)*2/3]
		}),
		made("bits-flipped", "A part whose check sum does not fit.", broken, func(tb testing.TB) []byte {
			tb.Helper()

			var packed bytes.Buffer

			writer := zip.NewWriter(&packed)

			for name, content := range parts(plainRows()) {
				part, err := writer.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
				require.NoError(tb, err)

				_, err = part.Write([]byte(content))
				require.NoError(tb, err)
			}

			require.NoError(tb, writer.Close())

			return bytes.Replace(packed.Bytes(), []byte("<v>2</v>"), []byte("<v>3</v>"), 1)
		}),
	}
}

// lyingBook returns a workbook with a sheet whose size differs from its declared size.
func lyingBook(tb testing.TB) []byte {
	tb.Helper()

	return bookOf(tb, "xl/worksheets/sheet1.xml", deflated(tb, "<worksheet><sheetData>"+strings.Repeat("<row></row>", 1<<16)), 100)
}

func wideRow(columns int) string {
	return row(1, strings.Repeat("<c><v>1</v></c>", columns))
}

// bomb returns a workbook in which one part is very long.
func bomb(tb testing.TB, name, begin, again string, size int) []byte {
	tb.Helper()

	block := strings.Repeat(again, (1<<20)/len(again))
	content := append(deflated(tb, begin), bytes.Repeat(deflated(tb, block), size/len(block))...)
	packed := bookOf(tb, name, content, len(begin)+size/len(block)*len(block))
	require.Less(tb, len(packed), 4<<20)

	return packed
}

// deflated returns compressed text to which more compressed text can be appended.
func deflated(tb testing.TB, text string) []byte {
	tb.Helper()

	var packed bytes.Buffer

	writer, err := flate.NewWriter(&packed, flate.BestSpeed)
	require.NoError(tb, err)

	_, err = writer.Write([]byte(text))
	require.NoError(tb, err)
	require.NoError(tb, writer.Flush())

	return packed.Bytes()
}

// bookOf returns a workbook with one part that is already compressed. Its checksum is missing, which has no effect,
// because readers do not reach the end of this part.
func bookOf(tb testing.TB, name string, content []byte, size int) []byte {
	tb.Helper()

	var packed bytes.Buffer

	writer := zip.NewWriter(&packed)

	for other, text := range parts(plainRows()) {
		if other == name {
			continue
		}

		part, err := writer.Create(other)
		require.NoError(tb, err)

		_, err = part.Write([]byte(text))
		require.NoError(tb, err)
	}

	part, err := writer.CreateRaw(&zip.FileHeader{Name: name, Method: zip.Deflate, CompressedSize64: uint64(len(content)), UncompressedSize64: uint64(max(size, 0))})
	require.NoError(tb, err)

	_, err = part.Write(content)
	require.NoError(tb, err)
	require.NoError(tb, writer.Close())

	return packed.Bytes()
}
