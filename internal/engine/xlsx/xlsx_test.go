package xlsx

import (
	"archive/zip"
	"bytes"
	"encoding/csv"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/engine"
)

func TestFormats(t *testing.T) {
	t.Parallel()

	date, clock, both, duration := format{date: true}, format{time: true}, format{date: true, time: true}, format{duration: true}

	for code, want := range map[string]format{
		"General": {}, "0.00": {}, "#,##0.00": {}, "0%": {}, "0.00E+00": {}, "@": {}, `0 "days"`: {}, `[Red]-0.0`: {}, `#,##0\ \d`: {}, `_-* #,##0.00\ [$€-407]_-`: {}, `# ?/?`: {}, "": {}, ";;": {},
		`[>=1000]#,##0,"k";0`: {}, "0;dd": {},
		"yyyy-mm-dd": date, `dd\.mm\.yyyy`: date, "mmm": date, "d-mmm-yy": date, `[$-F800]dddd\,\ mmmm\ dd\,\ yyyy`: date, "[$-411]ge.m.d": date, "yyyy\"\u5e74\"m\"\u6708\"": date, "mmmmm": date,
		"h:mm": clock, "hh:mm:ss": clock, "mm:ss": clock, "h:mm AM/PM": clock, "mm:ss.0": clock, "h AM/PM": clock,
		"m/d/yy h:mm": both, "yyyy-mm-dd hh:mm:ss": both,
		"[h]:mm": duration, "[mm]:ss": duration, "[ss]": duration, "d [h]": duration,
	} {
		require.Equal(t, want, formatOf(code), code)
	}
}

func TestPositions(t *testing.T) {
	t.Parallel()

	for name, want := range map[string][2]int{"A1": {1, 1}, "z9": {9, 26}, "AA10": {10, 27}, "XFD1048576": {1048576, 16384}} {
		row, column, ok := position(name)
		require.True(t, ok, name)
		require.Equal(t, want, [2]int{row, column}, name)
		require.Equal(t, strings.ToUpper(name), cellName(row, column))
	}

	for _, name := range []string{"", "A", "1", "A0", "XFE1", "A1048577", "A-1", "AAAA1", "A1B", "$A$1", "Ä1", "A99999999999999999999"} {
		_, _, ok := position(name)
		require.False(t, ok, name)
	}
}

func TestUnescape(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		"plain": "plain", "a_x000D_b": "a\rb", "_x005F_x000D_": "_x000D_", "_x": "_x", "_x00": "_x00", "_xZZZZ_": "_xZZZZ_", "_x0000_": "_x0000_", "_xD83D_": "_xD83D_", "_x_x0041_": "_xA",
	} {
		require.Equal(t, want, unescape(text), text)
	}
}

func bounds() engine.Bounds {
	return engine.Bounds{Columns: 100, Record: 1 << 16, Unpacked: 1 << 22, SetAside: 100}
}

// workbook writes a workbook that consists of a sheet and shared texts, and returns its path.
func workbook(tb testing.TB, sheet, texts string) string {
	tb.Helper()

	var packed bytes.Buffer

	writer := zip.NewWriter(&packed)

	for name, content := range map[string]string{
		"_rels/.rels":     `<Relationships><Relationship Id="a" Type="x/officeDocument" Target="xl/workbook.xml"/></Relationships>`,
		"xl/workbook.xml": `<workbook><sheets><sheet name="a" r:id="a"/></sheets></workbook>`,
		"xl/_rels/workbook.xml.rels": `<Relationships><Relationship Id="a" Type="x/worksheet" Target="sheet.xml"/><Relationship Id="b" Type="x/sharedStrings" Target="texts.xml"/>` +
			`<Relationship Id="c" Type="x/styles" Target="styles.xml"/></Relationships>`,
		"xl/styles.xml": `<styleSheet><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="22"/><xf numFmtId="46"/></cellXfs></styleSheet>`,
		"xl/sheet.xml":  sheet, "xl/texts.xml": texts,
	} {
		part, err := writer.Create(name)
		require.NoError(tb, err)

		_, err = part.Write([]byte(content))
		require.NoError(tb, err)
	}

	require.NoError(tb, writer.Close())

	return store(tb, packed.Bytes())
}

func store(tb testing.TB, content []byte) string {
	tb.Helper()

	path := filepath.Join(tb.TempDir(), "book")
	require.NoError(tb, os.WriteFile(path, content, 0o600))

	return path
}

// try converts any workbook to text. It checks that the workbook is either refused with an *engine.FileError, or that
// each record has all columns.
func try(t *testing.T, path string, options engine.Options) {
	t.Helper()

	to := filepath.Join(t.TempDir(), "text")

	file, err := os.Open(path)
	require.NoError(t, err)

	defer file.Close()

	info, err := file.Stat()
	require.NoError(t, err)

	table, err := Write(file, info.Size(), to, options, bounds())
	if err != nil {
		require.ErrorAs(t, err, new(*engine.FileError))

		return
	}

	content, err := os.ReadFile(to)
	require.NoError(t, err)

	reader := csv.NewReader(bytes.NewReader(content))
	reader.FieldsPerRecord = len(table.typed)

	records, err := reader.ReadAll()
	require.NoError(t, err, "%q", content)
	require.True(t, len(records) > 0 || len(bytes.TrimSpace(content)) == 0)
	require.NoFileExists(t, to+".rows")
}

// TestUnpacked checks both limits: the declared size of a part, and the bytes unpacked from all parts together.
func TestUnpacked(t *testing.T) {
	t.Parallel()

	long := strings.Repeat("<si><t>"+strings.Repeat("a", 1000)+"</t></si>", 3<<10)
	sheet := `<worksheet><sheetData><row><c t="s"><v>0</v></c></row>` + strings.Repeat("<row/>", 1<<18) + `</sheetData></worksheet>`

	for _, texts := range []string{long, long + long} {
		path := workbook(t, sheet, "<sst>"+texts+"</sst>")
		file, err := os.Open(path)
		require.NoError(t, err)

		defer file.Close()

		info, err := file.Stat()
		require.NoError(t, err)

		_, err = Write(file, info.Size(), path+".text", engine.Options{}, bounds())
		require.ErrorContains(t, err, engine.LimitExceeded)
	}
}

// FuzzXLSX uses any XML as a sheet and as shared texts.
func FuzzXLSX(f *testing.F) {
	const cells = `<row><c t="s"><v>0</v></c><c t="inlineStr"><is><r><t>b</t></r></is></c></row><row r="2"><c s="1"><v>46000</v></c><c r="B2" s="2"><v>4.5</v></c></row>`

	for _, sheet := range []string{
		`<worksheet><sheetData>` + cells + `</sheetData></worksheet>`,
		`<worksheet><sheetData>` + cells + `<row r="9"><c r="C9" t="b"><v>1</v></c><c t="e"><f>1/0</f></c></row></sheetData><mergeCells><mergeCell ref="A1:A2"/><mergeCell ref="B2:C9"/></mergeCells></worksheet>`,
		`<worksheet><sheetData><row r="1048576"><c r="XFD1048576" s="3"><v>-1e300</v></c></row></sheetData></worksheet>`,
		`<worksheet><sheetData><row><c t="str"><f>a</f><v>x</v></c></row>`,
		`<worksheet><sheetData><row><c t="d"><v>2026-11-15T10:11:12Z</v></c><c t="d"><v>1,"2</v></c></row></sheetData></worksheet>`,
		`<!DOCTYPE a><worksheet/>`,
		"",
	} {
		f.Add(sheet, `<sst><si><t>a</t></si></sst>`, 0, true)
		f.Add(sheet, `<sst>`, 1, false)
	}

	f.Fuzz(func(t *testing.T, sheet, texts string, skip int, header bool) {
		try(t, workbook(t, sheet, texts), engine.Options{SkipRows: max(skip, 0), Header: &header})
	})
}

// FuzzArchive uses any bytes as a workbook.
func FuzzArchive(f *testing.F) {
	content, err := os.ReadFile(workbook(f, `<worksheet><sheetData><row><c><v>1</v></c></row></sheetData></worksheet>`, `<sst/>`))
	require.NoError(f, err)

	f.Add(content, "")
	f.Add(content[:len(content)/2], "1")
	f.Add([]byte(CompoundMagic), "a")

	f.Fuzz(func(t *testing.T, content []byte, sheet string) {
		path := store(t, content)
		try(t, path, engine.Options{Sheet: sheet})
		require.ErrorAs(t, RefuseCompound(path), new(*engine.FileError))
	})
}
