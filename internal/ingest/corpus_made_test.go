package ingest_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
)

const (
	invalidFile    = `{"fault": {"code": "INVALID_FILE"}}`
	tooManyColumns = `{"fault": {"code": "TOO_MANY_COLUMNS", "contains": "columns"}}`
	lineTooLong    = `{"fault": {"code": "LINE_TOO_LONG"}}`
	limitExceeded  = `{"fault": {"code": "LIMIT_EXCEEDED"}}`
	idAndName      = `"columns": [{"name": "id", "type": "bigint"}, {"name": "name", "type": "varchar"}]`
)

// packedCases returns one case of each format again, compressed with gzip and with zstd.
func packedCases(tb testing.TB, stored []corpusCase) []corpusCase {
	tb.Helper()

	var (
		all     []corpusCase
		formats = []string{"csv-plain", "tsv-plain", "json-array", "ndjson-plain", "parquet-plain", "utf16-le", "ragged-rows", "ndjson-broken-line", "binary-png", "empty-file"}
	)

	for _, one := range slices.Concat(stored, parquetCases()) {
		if !slices.Contains(formats, one.name) {
			continue
		}

		file := one.files[0]

		for packing, pack := range map[string]func(testing.TB, []byte) []byte{"gzip": gzipped, "zstd": zstded} {
			packed := one
			packed.name += "-" + packing
			packed.want.About += " In " + packing + "."
			packed.files = []corpusFile{{name: file.name, content: func(tb testing.TB) []byte {
				tb.Helper()

				return pack(tb, file.content(tb))
			}}}
			all = append(all, packed)
		}
	}

	require.Len(tb, all, 2*len(formats))

	return all
}

// large returns the names of the cases whose files are too large to be seeds.
func large() map[string]bool {
	return map[string]bool{
		"line-50-mb": true, "line-50-mb-blank": true, "line-50-mb-quoted": true, "line-15-mb": true,
		"ndjson-line-50-mb": true, "json-record-50-mb": true, "gzip-bomb": true, "zstd-bomb": true, "gzip-bomb-line": true,
		"beyond-buffers": true, "beyond-buffers-quoted": true,
	}
}

func madeCases() []corpusCase {
	return slices.Concat(packingCases(), wideCases(), longLineCases(), lateCases())
}

func packingCases() []corpusCase {
	plain := []byte("id,name\n1,Ann\n2,Bob\n")
	read := `{` + idAndName + `, "rows": [[1, "Ann"], [2, "Bob"]]}`
	twice := `{` + idAndName + `, "rows": [[1, "Ann"], [2, "Bob"], [3, "Cem"]]}`
	empty := `{"fault": {"code": "INVALID_FILE", "contains": "empty"}}`

	return []corpusCase{
		made("gzip-name-lies", "Packed, though the name says nothing of it.", read, func(tb testing.TB) []byte {
			tb.Helper()

			return gzipped(tb, plain)
		}),
		made("gzip-truncated", "A download that broke off.", invalidFile, func(tb testing.TB) []byte {
			tb.Helper()
			packed := gzipped(tb, numbers(5000))

			return packed[:len(packed)/2]
		}),
		made("gzip-truncated-trailer", "Only the check sum is missing.", invalidFile, func(tb testing.TB) []byte {
			tb.Helper()
			packed := gzipped(tb, plain)

			return packed[:len(packed)-6]
		}),
		made("gzip-header-only", "The magic and nothing else.", invalidFile, fixed([]byte{0x1f, 0x8b, 8})),
		made("gzip-check-sum", "The check sum does not fit.", invalidFile, func(tb testing.TB) []byte {
			tb.Helper()
			packed := gzipped(tb, plain)
			packed[len(packed)-8] ^= 0xff

			return packed
		}),
		made("gzip-twice", "A gzip in a gzip.", invalidFile, func(tb testing.TB) []byte {
			tb.Helper()

			return gzipped(tb, gzipped(tb, plain))
		}),
		made("gzip-of-zstd", "A zstd in a gzip.", invalidFile, func(tb testing.TB) []byte {
			tb.Helper()

			return gzipped(tb, zstded(tb, plain))
		}),
		made("gzip-members", "Two members are one file.", twice, func(tb testing.TB) []byte {
			tb.Helper()

			return slices.Concat(gzipped(tb, plain), gzipped(tb, []byte("3,Cem\n")))
		}),
		made("gzip-empty-member", "A member without bytes.", empty, func(tb testing.TB) []byte {
			tb.Helper()

			return slices.Concat(gzipped(tb, nil), gzipped(tb, nil))
		}),
		made("gzip-garbage-after", "Something else after the last member.", invalidFile, func(tb testing.TB) []byte {
			tb.Helper()

			return slices.Concat(gzipped(tb, plain), []byte("3,Cem\n"))
		}),
		made("zstd-truncated", "A download that broke off.", invalidFile, func(tb testing.TB) []byte {
			tb.Helper()
			packed := zstded(tb, numbers(5000))

			return packed[:len(packed)/2]
		}),
		made("zstd-frames", "A skippable frame and two frames are one file.", twice, func(tb testing.TB) []byte {
			tb.Helper()
			skippable := []byte{0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 'x', 'y', 'z'}

			return slices.Concat(zstded(tb, plain), skippable, zstded(tb, []byte("3,Cem\n")))
		}),
		made("zstd-window", "A frame that asks for a window of gigabytes.", invalidFile, fixed([]byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xf8, 0x01, 0x00, 0x00})),
		made("gzip-bomb", "A few hundred kilobytes that unpack to 320 MiB of rows.", limitExceeded, func(tb testing.TB) []byte {
			tb.Helper()
			member := gzipped(tb, bytes.Repeat([]byte("1,Ann\n"), 64<<20/6))

			return slices.Concat(gzipped(tb, plain), bytes.Repeat(member, 5))
		}),
		made("gzip-bomb-line", "The same in one line.", limitExceeded, func(tb testing.TB) []byte {
			tb.Helper()

			return bytes.Repeat(gzipped(tb, bytes.Repeat([]byte("x"), 64<<20)), 5)
		}),
		made("zstd-bomb", "The same in zstd.", limitExceeded, func(tb testing.TB) []byte {
			tb.Helper()
			frame := zstded(tb, bytes.Repeat([]byte("1,Ann\n"), 64<<20/6))

			return slices.Concat(zstded(tb, plain), bytes.Repeat(frame, 5))
		}),
	}
}

func wideCases() []corpusCase {
	columns := func(count int) []string {
		names := make([]string, count)
		for i := range names {
			names[i] = fmt.Sprintf("c%d", i+1)
		}

		return names
	}
	table := func(count int) []byte {
		row := strings.TrimSuffix(strings.Repeat("7,", count), ",")

		return []byte(strings.Join(columns(count), ",") + "\n" + row + "\n" + row + "\n")
	}

	object := map[string]int{}
	for _, name := range columns(5000) {
		object[name] = 1
	}

	var growing strings.Builder
	for i := range 2500 {
		fmt.Fprintf(&growing, "{\"id\": %d, \"k%d\": 1}\n", i, i)
	}

	widest := expected{About: "As many columns as are allowed.", Rows: json.RawMessage(`{"count": 2, "sums": {"c1": 14, "c2000": 14}}`)}
	for _, name := range columns(2000) {
		widest.Columns = append(widest.Columns, column{Name: name, Type: "bigint"})
	}

	wide, err := json.Marshal([]any{object})
	if err != nil {
		panic(err)
	}

	return []corpusCase{
		{name: "columns-2000", files: []corpusFile{{name: "data.csv", content: fixed(table(2000))}}, want: widest},
		made("columns-2001", "One column too many.", tooManyColumns, fixed(table(2001))),
		made("columns-5000", "Far too many columns.", tooManyColumns, fixed(table(5000))),
		made("columns-5000-json", "Far too many keys.", tooManyColumns, fixed(wide)),
		made("columns-growing", "Each line has a key of its own.", tooManyColumns, fixed([]byte(growing.String()))),
		made("columns-delimiters", "A header of delimiters alone.", tooManyColumns, fixed([]byte("id"+strings.Repeat(",", 100_000)+"\n1\n"))),
	}
}

func longLineCases() []corpusCase {
	around := func(before, unit string, size int, after string) func(testing.TB) []byte {
		return func(testing.TB) []byte {
			return slices.Concat([]byte(before), bytes.Repeat([]byte(unit), size/len(unit)), []byte(after))
		}
	}

	return []corpusCase{
		made("line-50-mb", "A cell of 50 MB.", lineTooLong, around("id,name\n1,Ann\n2,", "x", 50_000_000, "\n3,Cem\n")),
		made("line-50-mb-blank", "Fifty megabytes without a line end or a delimiter.", lineTooLong, around("", "abc ", 50_000_000, "")),
		made("line-50-mb-quoted", "A quoted record of 50 MB in many lines.", lineTooLong, around("id,name\n1,Ann\n2,\"", "some text\n", 50_000_000, "\"\n3,Cem\n")),
		made("line-15-mb", "A long record within the limit.", `{`+idAndName+`, "rows": {"count": 3, "sums": {"id": 6}}}`, around("id,name\n1,Ann\n2,", "x", 15<<20, "\n3,Cem\n")),
		made("ndjson-line-50-mb", "An object of 50 MB in one line.", lineTooLong, around("{\"id\": 1, \"name\": \"Ann\"}\n{\"id\": 2, \"name\": \"", "x", 50_000_000, "\"}\n")),
		made("json-record-50-mb", "An object of 50 MB in an array.", lineTooLong, around("[{\"id\": 1, \"name\": \"Ann\"},\n{\"id\": 2, \"name\": \"", "x", 50_000_000, "\"}]\n")),
	}
}

// lateCases returns long files, most of them with a defect after the sample that determines the types.
func lateCases() []corpusCase {
	const count, at, wide = 25_000, 22_222, 120_000

	id := `"columns": [{"name": "id", "type": "bigint"}, {"name": "n", "type": "bigint"}]`
	sum := count * (count + 1) / 2
	without := fmt.Sprintf(`"rows": {"count": %d, "sums": {"id": %d, "n": %d}}`, count-1, sum-at, 2*(sum-at))
	aside := func(reason string) string {
		return fmt.Sprintf(`{%s, %s, "setAside": [{"row": %d, "reasonContains": %q}]}`, id, without, at, reason)
	}
	replaced := func(line string) func(testing.TB) []byte {
		return func(testing.TB) []byte {
			return bytes.Replace(numbers(count), fmt.Appendf(nil, "\n%d,%d\n", at, 2*at), []byte("\n"+line+"\n"), 1)
		}
	}
	lines := func(line string) func(testing.TB) []byte {
		return func(testing.TB) []byte {
			var text strings.Builder

			for i := 1; i <= count; i++ {
				if i == at {
					text.WriteString(line + "\n")
				} else {
					fmt.Fprintf(&text, "{\"id\": %d, \"n\": %d}\n", i, 2*i)
				}
			}

			return []byte(text.String())
		}
	}

	return []corpusCase{
		made("beyond-buffers", "More than DuckDB reads at once: no record may get lost where one buffer ends.",
			fmt.Sprintf(`{"columns": [{"name": "id", "type": "bigint"}, {"name": "text", "type": "varchar"}], "rows": {"count": %d, "sums": {"id": %d}}}`, wide, wide*(wide+1)/2),
			func(testing.TB) []byte { return wideRows(wide, "x") }),
		made("beyond-buffers-quoted", "The same with line ends in quotes that look like those of records.",
			fmt.Sprintf(`{"columns": [{"name": "id", "type": "bigint"}, {"name": "text", "type": "varchar"}], "rows": {"count": %d, "sums": {"id": %d}}}`, wide/2, wide/2*(wide/2+1)/2),
			func(testing.TB) []byte { return wideRows(wide/2, "\n7,\"\"y\"\"") }),
		made("late-none", "Many rows and nothing wrong.", fmt.Sprintf(`{%s, "rows": {"count": %d, "sums": {"id": %d, "n": %d}}}`, id, count, sum, 2*sum), fixed(numbers(count))),
		made("late-word", "A word among numbers, after the sample.", aside("oops"), replaced("22222,oops")),
		made("late-double", "A fraction among whole numbers, after the sample: not rounded.", aside("7.5"), replaced("22222,7.5")),
		made("late-wide", "A number beyond bigint, after the sample.", aside("99999999999999999999"), replaced("22222,99999999999999999999")),
		made("late-ragged", "A short record after the sample.", aside("columns"), replaced("22222")),
		made("late-quote", "Text after a closing quote, after the sample.", aside("quote"), replaced(`22222,"4"4`)),
		made("late-bytes", "A byte that is not UTF-8, after the sample.", `{"fault": {"code": "INVALID_FILE", "contains": "line 22223"}}`, replaced("22222,\xe9")),
		made("late-nul", "A NUL after the sample.", invalidFile, replaced("22222,\x00")),
		made("late-value", "A column without a value in the sample is text, whatever comes later.",
			fmt.Sprintf(`{"columns": [{"name": "id", "type": "bigint"}, {"name": "n", "type": "varchar"}], "rows": {"count": %d, "sums": {"id": %d}}}`, count, sum), func(tb testing.TB) []byte {
				tb.Helper()

				text := []byte("id,n\n")
				for i := 1; i <= count; i++ {
					text = fmt.Appendf(text, "%d,%s\n", i, map[bool]string{true: "5"}[i == at])
				}

				return text
			}),
		made("late-ndjson-word", "A text among numbers, after the sample.", aside("oops"), lines(`{"id": 22222, "n": "oops"}`)),
		made("late-ndjson-broken", "A broken line after the sample.", aside(""), lines(`{"id": 22222, "n": `)),
		made("late-ndjson-key", "A key that comes after the sample is a column all the same.",
			fmt.Sprintf(`{"columns": [{"name": "id", "type": "bigint"}, {"name": "n", "type": "bigint"}, {"name": "late", "type": "varchar"}], "rows": {"count": %d, "sums": {"id": %d, "n": %d}}}`, count, sum, 2*sum), lines(`{"id": 22222, "n": 44444, "late": "x"}`)),
	}
}

func made(name, about, want string, content func(testing.TB) []byte) corpusCase {
	return corpusCase{name: name, files: []corpusFile{{name: "data.csv", content: content}}, want: expect(about, want)}
}

// wideRows returns a table id,text. Each text is quoted and has 300 bytes of the repeated unit.
func wideRows(count int, unit string) []byte {
	text, cell := []byte("id,text\n"), strings.Repeat(unit, 300/len(unit))

	for i := 1; i <= count; i++ {
		text = fmt.Appendf(text, "%d,\"%s\"\n", i, cell)
	}

	return text
}

// numbers returns a table id,n where n is twice the id.
func numbers(count int) []byte {
	text := []byte("id,n\n")

	for i := 1; i <= count; i++ {
		text = fmt.Appendf(text, "%d,%d\n", i, 2*i)
	}

	return text
}

func gzipped(tb testing.TB, content []byte) []byte {
	tb.Helper()

	var packed bytes.Buffer

	writer := gzip.NewWriter(&packed)
	_, err := writer.Write(content)
	require.NoError(tb, err)
	require.NoError(tb, writer.Close())

	return packed.Bytes()
}

func zstded(tb testing.TB, content []byte) []byte {
	tb.Helper()

	writer, err := zstd.NewWriter(nil, zstd.WithZeroFrames(true))
	require.NoError(tb, err)

	return writer.EncodeAll(content, nil)
}
