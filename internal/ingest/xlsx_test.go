package ingest_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/xuri/excelize/v2"
)

func TestXLSX(t *testing.T) {
	t.Parallel()

	read := openReader(t)
	cases := xlsxCases()
	require.GreaterOrEqual(t, len(cases), 25)

	for _, one := range cases {
		t.Run(one.name, func(t *testing.T) {
			t.Parallel()

			path := filepath.Join(t.TempDir(), "data.csv") // the name does not matter
			require.NoError(t, os.WriteFile(path, one.files[0].content(t), 0o600))

			one.want.check(t, read(t, []string{path}, one.want.Options))
		})
	}
}

func xlsxCases() []corpusCase {
	return slices.Concat(cellCases(), sheetCases(), layoutCases(), otherOfficeCases(), hostileBookCases())
}

// parts returns the parts of a workbook with these sheets. The styles are: 1 date, 2 timestamp, 3 time, 4 duration, 5
// to 11 formats with a code.
func parts(sheets ...string) map[string]string {
	const types = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"

	var list, relations strings.Builder

	all := map[string]string{
		"_rels/.rels": `<Relationships><Relationship Id="rId1" Type="` + types + `officeDocument" Target="xl/workbook.xml"/></Relationships>`,
		"xl/sharedStrings.xml": `<sst><si><t>id</t></si><si><t>name</t></si><si><t xml:space="preserve"> Ann </t></si>` +
			`<si><r><t>Bo</t></r><r><rPr><b/></rPr><t>b</t></r><rPh sb="0" eb="1"><t>spoken</t></rPh></si><si><t/></si></sst>`,
		"xl/styles.xml": `<styleSheet><numFmts><numFmt numFmtId="164" formatCode="dd\.mm\.yyyy;@"/><numFmt numFmtId="165" formatCode="#,##0.00 &quot;days&quot;"/>` +
			`<numFmt numFmtId="166" formatCode="[$-407]d. mmmm yyyy"/><numFmt numFmtId="167" formatCode="[Red]0.00E+00"/><numFmt numFmtId="168" formatCode="[hh]:mm"/>` +
			`<numFmt numFmtId="169" formatCode="General"/><numFmt numFmtId="170" formatCode="h:mm AM/PM"/></numFmts><cellStyleXfs><xf numFmtId="14"/></cellStyleXfs>` +
			`<cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="22"/><xf numFmtId="21"/><xf numFmtId="46"/><xf numFmtId="164"/><xf numFmtId="165"/>` +
			`<xf numFmtId="166"/><xf numFmtId="167"/><xf numFmtId="168"/><xf numFmtId="169"/><xf numFmtId="170"/></cellXfs></styleSheet>`,
	}

	for i, sheet := range sheets {
		fmt.Fprintf(&list, `<sheet name="Sheet%[1]d" sheetId="%[1]d" r:id="rId%[1]d"/>`, i+1)
		fmt.Fprintf(&relations, `<Relationship Id="rId%[1]d" Type="%[2]sworksheet" Target="worksheets/sheet%[1]d.xml"/>`, i+1, types)

		if sheet == "" || strings.HasPrefix(sheet, "<row") {
			sheet = "<sheetData>" + sheet + "</sheetData>"
		}

		all[fmt.Sprintf("xl/worksheets/sheet%d.xml", i+1)] = `<?xml version="1.0" encoding="UTF-8"?><worksheet>` + sheet + `</worksheet>`
	}

	all["xl/workbook.xml"] = `<workbook><workbookPr/><sheets>` + list.String() + `</sheets></workbook>`
	all["xl/_rels/workbook.xml.rels"] = `<Relationships>` + relations.String() + `<Relationship Id="s" Type="` + types + `styles" Target="/xl/styles.xml"/>` +
		`<Relationship Id="t" Type="` + types + `sharedStrings" Target="sharedStrings.xml"/></Relationships>`

	return all
}

func zipped(tb testing.TB, parts map[string]string) []byte {
	tb.Helper()

	var packed bytes.Buffer

	writer := zip.NewWriter(&packed)

	for _, name := range slices.Sorted(maps.Keys(parts)) {
		part, err := writer.Create(name)
		require.NoError(tb, err)

		_, err = part.Write([]byte(parts[name]))
		require.NoError(tb, err)
	}

	require.NoError(tb, writer.Close())

	return packed.Bytes()
}

// byHand returns a case of a workbook whose sheets are given as XML.
func byHand(name, about, want string, sheets ...string) corpusCase {
	return withPart(name, about, want, "", "", sheets...)
}

// withPart is byHand with another part replaced.
func withPart(name, about, want, part, content string, sheets ...string) corpusCase {
	return made(name, about, want, func(tb testing.TB) []byte {
		tb.Helper()

		all := parts(sheets...)
		if part != "" {
			all[part] = content
		}

		return zipped(tb, all)
	})
}

// byLibrary returns a case of a workbook that a library writes.
func byLibrary(name, about, want string, fill func(tb testing.TB, book *excelize.File)) corpusCase {
	return made(name, about, want, func(tb testing.TB) []byte {
		tb.Helper()

		book := excelize.NewFile()
		defer book.Close()

		fill(tb, book)

		var written bytes.Buffer

		require.NoError(tb, book.Write(&written))

		return written.Bytes()
	})
}

// put fills the first sheet, starting at a cell.
func put(tb testing.TB, book *excelize.File, from string, rows ...[]any) {
	tb.Helper()

	column, row, err := excelize.CellNameToCoordinates(from)
	require.NoError(tb, err)

	for i := range rows {
		cell, err := excelize.CoordinatesToCellName(column, row+i)
		require.NoError(tb, err)
		require.NoError(tb, book.SetSheetRow("Sheet1", cell, &rows[i]))
	}
}

func row(number int, cells string) string { return fmt.Sprintf(`<row r="%d">%s</row>`, number, cells) }

func textCell(name, text string) string {
	return `<c r="` + name + `" t="inlineStr"><is><t>` + text + `</t></is></c>`
}

func numberCell(name, number string) string { return `<c r="` + name + `"><v>` + number + `</v></c>` }

func styledCell(name string, style int, number string) string {
	return fmt.Sprintf(`<c r="%s" s="%d"><v>%s</v></c>`, name, style, number)
}

// plainRows returns a header and two rows of id and name.
func plainRows() string {
	return row(1, textCell("A1", "id")+textCell("B1", "name")) + row(2, numberCell("A2", "1")+textCell("B2", "Ann")) + row(3, numberCell("A3", "2")+textCell("B3", "Bob"))
}

const plainRead = `{` + idAndName + `, "rows": [[1, "Ann"], [2, "Bob"]]}`
