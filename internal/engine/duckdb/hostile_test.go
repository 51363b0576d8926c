package duckdb

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/xuri/excelize/v2"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/sandbox"
)

// nest returns a new folder with canaries.
func nest(t *testing.T) string {
	t.Helper()

	dir := t.TempDir()
	for _, name := range []string{"secret.txt", "precious.txt", "x.duckdb_extension"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(canary), 0o600))
	}

	return dir
}

func TestHostileFiles(t *testing.T) {
	t.Parallel()

	var free, names int

	for _, r := range reaches(nest(t), listen(t)) {
		names++

		if said := tryFreely(t, r); r.reached(said) {
			free++
		} else {
			t.Log("not even free:", r.name, said.Error)
		}
	}

	require.GreaterOrEqual(t, free, names*3/4, "positive control")

	for _, tier := range []sandbox.Tier{sandbox.Full, sandbox.Reduced} { // Full is limited by what the machine supports
		t.Run(tier.String(), func(t *testing.T) {
			t.Parallel()
			hostileFiles(t, children(t, tier))
		})
	}
}

func hostileFiles(t *testing.T, sealed *sandbox.Sandbox) {
	t.Helper()

	for name, try := range map[string]func(*testing.T, *sandbox.Sandbox){
		"the kernel alone refuses":      onlyKernel,
		"what lies in the folder":       inFolder,
		"content":                       hostileContent,
		"names":                         hostileNames,
		"options":                       hostileOptions,
		"Parquet that points elsewhere": pointingParquet,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			try(t, sealed)
		})
	}
}

func onlyKernel(t *testing.T, s *sandbox.Sandbox) {
	t.Helper()

	for _, r := range reaches(nest(t), listen(t)) {
		said := trySealed(t, s, r)
		require.False(t, r.reached(said), "%s: %+v", r.name, said)
		require.NotContains(t, said.Said, canary, r.name)
	}
}

func tryFreely(t *testing.T, r reach) (said attacked) {
	t.Helper()

	command := exec.CommandContext(t.Context(), os.Args[0], "free")
	command.Env = []string{"CANARY=" + canary, "HOME=" + t.TempDir()}
	command.Stdin = strings.NewReader(encoded(t, attack{r.statements}))
	command.Stderr = t.Output()

	output, err := command.Output()
	require.NoError(t, err, r.name)
	require.NoError(t, json.Unmarshal(output, &said))

	return said
}

func trySealed(t *testing.T, s *sandbox.Sandbox, r reach) (said attacked) {
	t.Helper()

	child, err := s.Start(t.Context(), attacker, sandbox.Limits{Memory: room})
	require.NoError(t, err)

	defer child.Close()

	require.NoError(t, child.Send(attack{r.statements}))

	// A child that dies during the attempt has not reached anything.
	if err := child.Receive(&said); err != nil {
		said.Error = err.Error()
	}

	return said
}

// inFolder checks that a symbolic link cannot be followed, and that mounted files cannot be written.
func inFolder(t *testing.T, s *sandbox.Sandbox) {
	t.Helper()

	dir := nest(t)
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(filepath.Join(dir, "secret.txt"), link))

	child, err := s.Start(t.Context(), attacker, sandbox.Limits{Memory: room})
	require.NoError(t, err)

	defer child.Close()

	require.NoError(t, child.Mount(link, "link"))
	require.NoError(t, child.Mount(filepath.Join(dir, "precious.txt"), "precious"))

	for statement, allowed := range map[string]bool{
		`SELECT content FROM read_text('{in}/precious')`:                              true,
		`SELECT content FROM read_text('{in}/link')`:                                  false,
		`COPY (SELECT 1) TO '{in}/precious' (FORMAT csv, USE_TMP_FILE false)`:         false,
		`COPY (SELECT 1) TO '{in}/new.csv'`:                                           false,
		`COPY (SELECT 1) TO '{tmp}/new.csv'`:                                          true,
		`SELECT file FROM glob('{in}/../../*/in/*') WHERE NOT contains(file, '{in}')`: true, // the list must be empty
	} {
		var said attacked

		require.NoError(t, child.Send(attack{[]string{statement}}))
		require.NoError(t, child.Receive(&said))
		require.Equal(t, allowed, said.Error == "", "%s: %+v", statement, said)

		if strings.Contains(statement, "glob") {
			require.Equal(t, "[]", said.Said, "files of other jobs")
		}
	}

	content, err := os.ReadFile(filepath.Join(dir, "precious.txt"))
	require.NoError(t, err)
	require.Equal(t, canary, string(content))

	// The same through the program: a symbolic link is a file that cannot be read.
	_, err = session(t, s, link, "file").Inspect([]engine.Source{{Name: "file"}}, engine.Options{}, bounds())
	require.Error(t, err)
	require.NotContains(t, err.Error(), canary)
}

// hostileContent checks that the content of a file is always treated as a value.
func hostileContent(t *testing.T, s *sandbox.Sandbox) {
	t.Helper()

	secret := filepath.Join(nest(t), "secret.txt")
	cells := []string{secret, "file://" + secret, `' || (SELECT content FROM read_text('` + secret + `')) || '`, `=HYPERLINK("` + secret + `")`, `@` + secret, "${CANARY}", "%s%n"}

	var csv, ndjson strings.Builder

	csv.WriteString("id,v\n")

	sheet := [][]any{{"id", "v"}}

	for i, cell := range cells {
		fmt.Fprintf(&csv, "%d,\"%s\"\n", i, strings.ReplaceAll(cell, `"`, `""`))
		fmt.Fprintf(&ndjson, "{\"id\": %d, \"v\": %s}\n", i, encoded(t, cell))
		sheet = append(sheet, []any{i, cell})
	}

	for _, content := range []string{csv.String(), ndjson.String(), workbook(t, sheet)} {
		found, err := session(t, s, written(t, content), "file").Preview([]engine.Source{{Name: "file"}}, engine.Options{}, bounds())
		require.NoError(t, err)
		require.Len(t, found.Rows, len(cells))

		for i, row := range found.Rows {
			require.Equal(t, cells[i], row["v"])
		}
	}
}

func workbook(t *testing.T, rows [][]any) string {
	t.Helper()

	book := excelize.NewFile()
	defer book.Close()

	for i := range rows {
		require.NoError(t, book.SetSheetRow("Sheet1", fmt.Sprintf("A%d", i+1), &rows[i]))
	}

	var written bytes.Buffer

	require.NoError(t, book.Write(&written))

	return written.String()
}

// hostileNames checks that names of columns and files are not treated as SQL or as patterns.
func hostileNames(t *testing.T, s *sandbox.Sandbox) {
	t.Helper()

	dir := nest(t)
	outside := filepath.Join(dir, "out.csv")
	columns := []string{`a"; COPY (SELECT 1) TO '` + outside + `'; --`, `'; ATTACH '` + outside + `'; --`, `{'a': 1}`, `c0`, `t`, `o`, `*`, `COLUMNS(*)`, `$$`, "\u202e"}

	header := make([]string, len(columns))
	object := map[string]int{}
	sheet := make([][]any, 2)

	for i, name := range columns {
		sheet[0], sheet[1] = append(sheet[0], name), append(sheet[1], 1)
		header[i] = `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
		object[name] = 1
	}

	csv := strings.Join(header, ",") + "\n" + strings.Repeat("1,", len(columns)-1) + "1\n"

	for _, content := range []string{csv, encoded(t, []any{object}), workbook(t, sheet)} {
		for _, file := range []string{"file", "a*b?[c]", `q'"; DROP`, "-rf"} {
			opened := session(t, s, written(t, content), file)
			require.NoError(t, opened.Mount(filepath.Join(dir, "secret.txt"), "aXbYc"))

			found, err := opened.Preview([]engine.Source{{Name: file}}, engine.Options{}, bounds())
			require.NoError(t, err)
			require.Len(t, found.Columns, len(columns))
			require.Len(t, found.Rows, 1)

			for i := range found.Columns {
				require.Contains(t, columns, found.Columns[i].Name)
				found.Columns[i].ID = i + 1
			}

			converted, err := opened.Convert(engine.ConvertRequest{Columns: found.Columns, Output: "out.parquet"}, nil)
			require.NoError(t, err)
			require.Equal(t, int64(1), converted.Rows)
			require.NoFileExists(t, outside)
		}
	}
}

// hostileOptions checks that an option that contains SQL is refused or treated as plain text.
func hostileOptions(t *testing.T, s *sandbox.Sandbox) {
	t.Helper()

	outside := filepath.Join(nest(t), "out.csv")

	for _, sql := range []string{`'`, `"`, `\`, `'); COPY (SELECT 1) TO '` + outside + `'; --`} {
		for _, options := range []engine.Options{
			{Delimiter: sql},
			{Quote: &sql},
			{Decimal: sql},
			{Thousands: &sql},
			{DateFormat: sql},
			{DateFormat: "yyyy" + sql},
			{Encoding: sql},
			{NullValues: []string{sql}},
			{Types: map[string]string{"a": sql}},
			{Types: map[string]string{sql: "bigint"}},
			{Sheet: sql},
			{Thousands: &sql, Types: map[string]string{"a": "decimal(9,2)"}},
		} {
			opened := session(t, s, written(t, "a,b\n1,x\n2,y\n"), "file")

			found, err := opened.Preview([]engine.Source{{Name: "file"}}, options, bounds())
			if err == nil {
				for i := range found.Columns {
					found.Columns[i].ID = i + 1
				}

				_, err = opened.Convert(engine.ConvertRequest{Columns: found.Columns, Output: "out.parquet"}, nil)
			}

			require.False(t, fault.Is(err, fault.Internal), "%+v: %v", options, err)
			require.NoFileExists(t, outside)
		}
	}
}

// pointingParquet checks a Parquet file whose footer says that the pages of a column are in another file.
func pointingParquet(t *testing.T, s *sandbox.Sandbox) {
	t.Helper()

	db, err := unlocked()
	require.NoError(t, err)

	dir := t.TempDir()
	mine, other := filepath.Join(dir, "mine"), filepath.Join(dir, "other")
	require.NoError(t, db.exec(`COPY (SELECT 'mine' AS v) TO `+text(mine)+` (FORMAT parquet)`))
	require.NoError(t, db.exec(`COPY (SELECT '`+canary+`' AS v) TO `+text(other)+` (FORMAT parquet)`))

	content, err := os.ReadFile(mine)
	require.NoError(t, err)

	opened := session(t, s, written(t, string(pointElsewhere(t, content, other))), "file")

	found, err := opened.Preview([]engine.Source{{Name: "file"}}, engine.Options{}, bounds())
	if err != nil {
		_, isFile := errors.AsType[*engine.FileError](err)
		require.True(t, isFile, err)
	}

	require.NotContains(t, fmt.Sprint(found, err), canary)
}

// pointElsewhere inserts the member file_path before file_offset in the first ColumnChunk of the footer.
func pointElsewhere(t *testing.T, content []byte, path string) []byte {
	t.Helper()

	const tail = 8 // the length and the magic

	size := int(binary.LittleEndian.Uint32(content[len(content)-tail:]))
	begin := len(content) - tail - size
	footer := content[begin : len(content)-tail]

	// In Thrift's compact protocol, field 2 is an i64 (0x26), followed by field 3, a struct (0x1c) that starts with an
	// i32 (0x15).
	for i := range footer {
		if footer[i] != 0x26 {
			continue
		}

		_, n := binary.Uvarint(footer[i+1:])
		if n <= 0 || !bytes.HasPrefix(footer[i+1+n:], []byte{0x1c, 0x15}) {
			continue
		}

		pointing := append([]byte{0x18}, binary.AppendUvarint(nil, uint64(len(path)))...)
		pointing = append(append(pointing, path...), 0x16)
		changed := append(append(append([]byte{}, footer[:i]...), pointing...), footer[i+1:]...)
		result := append(append([]byte{}, content[:begin]...), changed...)
		result = binary.LittleEndian.AppendUint32(result, uint32(len(changed)))

		return append(result, "PAR1"...)
	}

	require.Fail(t, "no column in the footer")

	return nil
}
