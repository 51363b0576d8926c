package duckdb

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/engine"
)

func FuzzFirstLine(f *testing.F) {
	for _, seed := range []string{"", "a", "a\nb", "a\r\nb", "a\rb", "\n", "\r"} {
		f.Add([]byte(seed))
	}

	f.Fuzz(func(t *testing.T, data []byte) {
		line, more := firstLine(data)
		require.True(t, bytes.HasPrefix(data, line))
		require.Equal(t, more, bytes.ContainsAny(line, "\r\n"))
		require.False(t, bytes.ContainsAny(bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r")), "\n"))
	})
}

// FuzzSplitRecordBack checks that splitRecord returns the cells that encoding/csv wrote.
func FuzzSplitRecordBack(f *testing.F) {
	f.Add("a", "b\"c", "d\ne", byte(','))
	f.Add("", " ", "\r\n", byte(';'))

	f.Fuzz(func(t *testing.T, a, b, c string, delimiter byte) {
		if strings.IndexByte(delimiters, delimiter) < 0 {
			return
		}

		cells := []string{a, b, c}

		var record bytes.Buffer

		writer := csv.NewWriter(&record)
		writer.Comma = rune(delimiter)
		require.NoError(t, writer.Write(cells))
		writer.Flush()

		got, rest, complete := splitRecord(append(record.Bytes(), "rest"...), string(delimiter), `"`)
		require.True(t, complete)
		require.Equal(t, "rest", string(rest))
		require.Equal(t, cells, got)

		// The other code that finds the end of a record must agree.
		seen, err := dialect{delimiter: string(delimiter), quote: `"`, longest: 1 << 20}.look(&record, '\n', nil)
		require.NoError(t, err)
		require.Equal(t, int64(-1), seen.unclosed)
		require.Equal(t, int64(1), seen.records+seen.blank)
	})
}

func FuzzSplitRecord(f *testing.F) {
	f.Add([]byte("a,b\n1,\"x\ny\"\n"), ",", `"`)
	f.Add([]byte("a||b"), "||", "")
	f.Add([]byte("\"a\"b\",c\n"), ",", `"`)

	f.Fuzz(func(t *testing.T, data []byte, delimiter, quote string) {
		if checkOptions(engine.Options{Delimiter: delimiter, Quote: &quote}) != nil || delimiter == "" {
			return
		}

		cells, rest, complete := splitRecord(data, delimiter, quote)
		require.NotEmpty(t, cells)
		require.True(t, bytes.HasSuffix(data, rest))
		require.True(t, complete || rest == nil)
		require.LessOrEqual(t, len(strings.Join(cells, "")), len(data))
	})
}

func FuzzLook(f *testing.F) {
	f.Add([]byte("id,name\n\n1,Ann\n,\n\n2,Bob,extra\n3,Cem\n"), ",", true, 0, int64(18))
	f.Add([]byte("\"a\n"), ";", false, 1, int64(1))

	f.Fuzz(func(t *testing.T, data []byte, delimiter string, header bool, skip int, position int64) {
		quote := `"`
		if checkOptions(engine.Options{Delimiter: delimiter, Quote: &quote, SkipRows: skip}) != nil || delimiter == "" {
			return
		}

		d := dialect{delimiter: delimiter, quote: quote, header: header, skip: skip, longest: 1 << 20}
		seen, err := d.look(bytes.NewReader(data), '\n', []int64{min(position, 1<<40), 1 << 41})
		require.NoError(t, err)

		lines := int64(bytes.Count(data, []byte("\n")) + 1)
		require.LessOrEqual(t, seen.records+seen.blank, lines)
		require.LessOrEqual(t, seen.longest, int64(len(data)))
		require.Len(t, seen.blanks, 2)
		require.LessOrEqual(t, seen.blanks[0], seen.blanks[1])
		require.LessOrEqual(t, seen.blanks[1], seen.blank)
	})
}

func FuzzCopyLines(f *testing.F) {
	f.Add([]byte("a,b\r\n1,\"x\r\ny\"\n2,z\r"), `"`)

	f.Fuzz(func(t *testing.T, data []byte, quote string) {
		if checkOptions(engine.Options{Quote: &quote}) != nil {
			return
		}

		file := plainFile{path: written(t, string(data)), size: int64(len(data))}
		d := dialect{delimiter: ",", quote: quote, longest: 1 << 20}
		require.NoError(t, file.oneLineEnd(t.TempDir(), "x", d))

		content, err := os.ReadFile(file.path)
		require.NoError(t, err)

		bare := func(b []byte) string { return strings.NewReplacer("\r", "", "\n", "").Replace(string(b)) }
		require.Equal(t, bare(data), bare(content))

		if quote == "" {
			require.NotContains(t, string(content), "\r")
		}
	})
}

func FuzzCheck(f *testing.F) {
	f.Add([]byte("a\n\xc3\xa9\r\n"), uint8(3))
	f.Add([]byte("a\x00"), uint8(0))
	f.Add([]byte("\r"), uint8(1))

	f.Fuzz(func(t *testing.T, data []byte, cut uint8) {
		file := plainFile{path: written(t, string(data)), size: int64(len(data))}

		ends, err := file.check()
		require.Equal(t, utf8.Valid(data) && bytes.IndexByte(data, 0) < 0, err == nil)
		require.Equal(t, int64(strings.Count(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(data)), "\n"))+1, file.lineAt(int64(len(data))))

		if err != nil {
			return
		}

		// The position at which the blocks are split must not matter.
		var blocks lineEnds

		at := min(int(cut), len(data))
		blocks.add(data[:at])
		blocks.add(data[at:])
		require.Equal(t, ends.mixed(), blocks.mixed())
	})
}

func FuzzLooksLikeJSON(f *testing.F) {
	for _, seed := range []string{`{"a": 1}`, `[]`, `[id],[name]`, ` [ {`, `{a}`, ``} {
		f.Add([]byte(seed))
	}

	f.Fuzz(func(t *testing.T, data []byte) {
		start := bytes.TrimLeft(data, " \t\r\n")
		if json.Valid(data) && (start[0] == '{' || start[0] == '[') {
			require.True(t, looksLikeJSON(data))
		}

		if looksLikeJSON(data) {
			require.Contains(t, "{[", string(start[0]))
		}
	})
}

func FuzzToLines(f *testing.F) {
	for _, seed := range []string{`[{"a": 1}, {"b": "\n"}]`, "{\n\"a\": 1}\n{}", `{"data": [{"a": [1]}], "x": 2}`, `[`, `{"data": 1}`, mark + `[{}]`, `[{"a": 1}]x`, "[\n1 2"} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}

	f.Fuzz(func(t *testing.T, data []byte, envelope bool) {
		format := engine.FormatJSON
		if envelope {
			format = engine.FormatRows
		}

		file, err := newPlain(written(t, string(data)), format, 0)
		require.NoError(t, err)

		_ = file.isLines()

		if err := file.toLines(t.TempDir(), "x", "", bounds()); err != nil {
			require.ErrorAs(t, err, new(*failure))

			return
		}

		content, err := os.ReadFile(file.path)
		require.NoError(t, err)

		for line := range bytes.Lines(content) {
			require.True(t, json.Valid(line))
			require.Equal(t, 1, bytes.Count(line, []byte("\n")))
		}
	})
}

func FuzzUnpack(f *testing.F) {
	f.Add([]byte("\x1f\x8b\x08"), "")
	f.Add([]byte("\x28\xb5\x2f\xfd\x00"), "")
	f.Add([]byte("\xff\xfea\x00"), "")
	f.Add([]byte("a,b\n"), "shift_jis")
	f.Add([]byte("PAR1"), "")

	f.Fuzz(func(t *testing.T, data []byte, encoding string) {
		tmp := t.TempDir()

		p := program{in: filepath.Dir(written(t, string(data))), tmp: tmp, options: engine.Options{Encoding: encoding}, bounds: bounds()}

		_, err := p.unpack(engine.Source{Name: "file"})
		if err != nil {
			require.ErrorAs(t, err, new(*failure))
		}
	})
}

func FuzzDated(f *testing.F) {
	for _, seed := range []string{"dd.mm.yyyy", "yyyy-mm-ddTHH:MM:SS", "d/m/yy", "%", "'", "(", "x", ""} {
		f.Add(seed)
	}

	f.Fuzz(func(t *testing.T, format string) {
		given, err := dated(format)
		if err != nil {
			require.ErrorAs(t, err, new(*failure))

			return
		}

		_, err = regexp.Compile(given.pattern)
		require.NoError(t, err)
		require.Contains(t, []string{engine.Date, engine.Timestamp}, given.kind)
		require.Zero(t, strings.Count(given.value("t"), "'")%2)
	})
}

func FuzzCandidates(f *testing.F) {
	f.Add(",", ".", "dd.mm.yyyy", "1.234,5")
	f.Add("", "'", "", "1'234")

	f.Fuzz(func(t *testing.T, decimal, thousands, date, cell string) {
		options := engine.Options{Decimal: decimal, Thousands: &thousands, DateFormat: date}
		if checkOptions(options) != nil {
			return
		}

		list, err := candidates(options)
		if err != nil {
			require.ErrorAs(t, err, new(*failure))

			return
		}

		for _, c := range list {
			c.takes(cell)
			require.Zero(t, strings.Count(c.matches("t"), "'")%2)
			c.stripped("€").matches("t")
		}
	})
}

func FuzzNames(f *testing.F) {
	f.Add("a", "A", "a_1")
	f.Add("__row", "", "\x00\xff")
	f.Add(strings.Repeat("é", 300), " b ", "column_1")

	f.Fuzz(func(t *testing.T, a, b, c string) {
		s := &source{columns: []column{{name: a}, {name: b}, {name: c}}}
		s.rename()

		var seen []string

		for _, column := range s.columns {
			name := column.name
			require.NotEmpty(t, name)
			require.True(t, utf8.ValidString(name))
			require.False(t, strings.HasPrefix(name, "__"))
			require.False(t, strings.ContainsFunc(name, unicode.IsControl))
			require.LessOrEqual(t, len(name), 300)
			require.NotContains(t, seen, strings.ToLower(name))
			seen = append(seen, strings.ToLower(name))
		}

		require.Equal(t, cleanName(a), cleanName(cleanName(a)))
	})
}

// FuzzNumber interprets each byte as a row: one that fits, one that does not fit, or one that cannot be parsed.
func FuzzNumber(f *testing.F) {
	f.Add([]byte{0, 1, 2, 2, 0, 1, 1, 2})

	f.Fuzz(func(t *testing.T, file []byte) {
		var want, misfits, rejected []engine.SetAside

		taken := int64(0)

		for i, kind := range file {
			row := engine.SetAside{Row: int64(i) + 1}

			switch kind % 3 {
			case 1:
				misfits = append(misfits, engine.SetAside{Row: taken + 1})
			case 2:
				rejected = append(rejected, row)
			}

			if kind%3 != 0 {
				want = append(want, row)
			}

			if kind%3 != 2 {
				taken++
			}
		}

		require.True(t, slices.Equal(want, number(misfits, rejected)))
	})
}

func FuzzSample(f *testing.F) {
	f.Add([]byte("a\nb\n"), uint16(3))
	f.Add([]byte("a\rb"), uint16(0))

	f.Fuzz(func(t *testing.T, data []byte, longest uint16) {
		file, err := newPlain(written(t, string(data)), engine.FormatText, 0)
		require.NoError(t, err)

		sample, err := file.sample(t.TempDir(), int64(longest))
		if err != nil {
			require.ErrorAs(t, err, new(*failure))

			return
		}

		content, err := os.ReadFile(sample.path)
		require.NoError(t, err)
		require.True(t, bytes.HasPrefix(data, content))
		require.Equal(t, filepath.Dir(sample.path) == filepath.Dir(file.path), len(content) == len(data))
	})
}
