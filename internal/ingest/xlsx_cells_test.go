package ingest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/xuri/excelize/v2"
)

func cellCases() []corpusCase {
	const numbers = `{"columns": [{"name": "n", "type": "double"}], "rows": `

	column := func(cells ...string) string {
		var rows strings.Builder

		rows.WriteString(row(1, textCell("A1", "n")))

		for i, cell := range cells {
			rows.WriteString(row(i+2, cell))
		}

		return rows.String()
	}

	return []corpusCase{
		byLibrary("library-plain", "What a library writes: texts, numbers, a date, a moment, a truth.", `{"columns": [{"name": "id", "type": "bigint"},
			{"name": "name", "type": "varchar"}, {"name": "total", "type": "double"}, {"name": "day", "type": "date"}, {"name": "at", "type": "timestamp"}, {"name": "paid", "type": "boolean"}],
			"rows": [[1, "Ann", 19.9, "2026-11-02", "2026-11-02T10:11:12.5", true], [2, "Bob", 5, "2026-11-03", "2026-11-03T00:00:00", false]]}`,
			func(tb testing.TB, book *excelize.File) {
				tb.Helper()

				day := func(d, h, m, s int) time.Time { return time.Date(2026, 11, d, h, m, s, 500*1000*1000*s/12, time.UTC) }
				put(tb, book, "A1", []any{"id", "name", "total", "day", "at", "paid"},
					[]any{1, "Ann", 19.9, day(2, 0, 0, 0), day(2, 10, 11, 12), true}, []any{2, "Bob", 5, day(3, 0, 0, 0), day(3, 0, 0, 0), false})

				for column, number := range map[string]int{"D": 14, "E": 22} {
					style, err := book.NewStyle(&excelize.Style{NumFmt: number})
					require.NoError(tb, err)
					require.NoError(tb, book.SetCellStyle("Sheet1", column+"2", column+"3", style))
				}
			}),
		byHand("shared-strings", "Shared texts: plain, rich, with blanks, empty, without what is spoken.", `{`+idAndName+`, "rows": [[1, " Ann "], [2, "Bob"], [3, ""], [4, null]]}`,
			row(1, `<c r="A1" t="s"><v>0</v></c><c r="B1" t="s"><v>1</v></c>`)+row(2, numberCell("A2", "1")+`<c r="B2" t="s"><v>2</v></c>`)+
				row(3, numberCell("A3", "2")+`<c r="B3" t="s"><v>3</v></c>`)+row(4, numberCell("A4", "3")+`<c r="B4" t="s"><v>4</v></c>`)+row(5, numberCell("A5", "4")+`<c r="B5" s="1"/>`)),
		byHand("text-digits", "Texts of digits stay texts, whatever they look like.",
			`{"columns": [{"name": "zip", "type": "varchar"}, {"name": "code", "type": "varchar"}, {"name": "flag", "type": "varchar"}, {"name": "price", "type": "varchar"}],
			"rows": [["01067", "12", "true", "5 €"], ["4109", "13", "false", "6 €"]]}`,
			row(1, textCell("A1", "zip")+textCell("B1", "code")+textCell("C1", "flag")+textCell("D1", "price"))+row(2, textCell("A2", "01067")+textCell("B2", "12")+textCell("C2", "true")+textCell("D2", "5 €"))+
				row(3, textCell("A3", "4109")+textCell("B3", "13")+textCell("C3", "false")+textCell("D3", "6 €"))),
		byHand("text-exact", "Line ends, quotes, delimiters, escapes and formulas in texts are kept.",
			`{`+idAndName+`, "rows": [[1, "a\r\nb"], [2, "say \"hi\", now"], [3, "=1+1"], [4, "tab\tand _x41_"], [5, "\"\"\n\n,"]]}`,
			row(1, textCell("A1", "id")+textCell("B1", "name"))+row(2, numberCell("A2", "1")+textCell("B2", "a_x000D_\nb"))+row(3, numberCell("A3", "2")+textCell("B3", `say "hi", now`))+
				row(4, numberCell("A4", "3")+textCell("B4", "=1+1"))+row(5, numberCell("A5", "4")+textCell("B5", "tab\tand _x005F_x41_"))+row(6, numberCell("A6", "5")+textCell("B6", "\"\"\n\n,"))),
		byHand("text-dates", "Texts that are dates are read as those of CSV are.", `{"columns": [{"name": "n", "type": "date"}], "rows": [["2026-11-02"], ["2026-11-03"]]}`,
			column(textCell("A2", "2026-11-02"), textCell("A3", "2026-11-03"))),
		byHand("numbers-exact", "All digits that are stored, none that are shown.", numbers+`[[0.30000000000000004], [12345678.9], [-1e-7], [1.5e300], [1e15], [3]]}`,
			column(numberCell("A2", "0.30000000000000004"), styledCell("A3", 6, "12345678.9"), numberCell("A4", "-1E-7"), numberCell("A5", "1.5E+300"), numberCell("A6", "1E+15"), styledCell("A7", 8, "3"))),
		byHand("numbers-whole", "Whole numbers of up to 18 digits are exact; 1E3 is one.", `{"columns": [{"name": "n", "type": "bigint"}], "rows": [[123456789012345678], [1000], [-5], [0]]}`,
			column(numberCell("A2", "123456789012345678"), numberCell("A3", "1E3"), numberCell("A4", "-5.0"), numberCell("A5", "-0"))),
		byHand("numbers-beside-texts", "A number among texts of digits, and a text among numbers.",
			`{"columns": [{"name": "n", "type": "varchar"}], "rows": [["1"], ["2"], ["n/a"]], "doubts": [{"column": "n", "option": "nullValues"}]}`,
			column(numberCell("A2", "1"), textCell("A3", "2"), textCell("A4", "n/a"))),
		byHand("null-values", "The option nullValues makes numbers of them.",
			`{"options": {"nullValues": ["n/a"]}, "columns": [{"name": "n", "type": "bigint"}], "rows": [[1], [2], [null]]}`,
			column(numberCell("A2", "1"), textCell("A3", "2"), textCell("A4", "n/a"))),
		byHand("types-option", "Types that are given: a misfit is set aside with its number.",
			`{"options": {"types": {"n": "decimal(9,2)"}}, "columns": [{"name": "n", "type": "decimal(9,2)"}], "rows": [[1.5], [2]], "setAside": [{"row": 2, "reasonContains": "2.345"}]}`,
			column(numberCell("A2", "1.5"), numberCell("A3", "2.345"), textCell("A4", "2"))),
		byHand("dates-1900", "Days of 1900, with the one that never was, before 1900 and after 9999.", `{"columns": [{"name": "n", "type": "date"}],
			"rows": [["1900-01-01"], ["1900-02-28"], ["1900-03-01"], ["2026-11-15"], ["9999-12-31"]], "doubts": [{"contains": "3 cells (the first is A4)"}]}`,
			column(styledCell("A2", 1, "1"), styledCell("A3", 5, "59"), styledCell("A4", 1, "60"), styledCell("A5", 7, "61"), styledCell("A6", 5, "46341"),
				styledCell("A7", 1, "2958465"), styledCell("A8", 1, "2958466"), styledCell("A9", 1, "-1"))),
		withPart("dates-1904", "Days of 1904.", `{"columns": [{"name": "n", "type": "date"}], "rows": [["1904-01-01"], ["1904-03-01"], ["2026-11-15"]]}`,
			"xl/workbook.xml", `<workbook><workbookPr date1904="1"/><sheets><sheet name="a" sheetId="1" r:id="rId1"/></sheets></workbook>`,
			column(styledCell("A2", 1, "0"), styledCell("A3", 1, "60"), styledCell("A4", 1, "44879"))),
		byHand("moments", "A date with a time is a moment, whichever of the two is shown.",
			`{"columns": [{"name": "n", "type": "timestamp"}], "rows": [["2026-11-15T00:00:00"], ["2026-11-15T12:00:00"], ["2026-11-15T06:00:00"], ["2026-11-15T23:59:59.999"], ["2026-11-16T10:11:12"]]}`,
			column(styledCell("A2", 2, "46341"), styledCell("A3", 1, "46341.5"), styledCell("A4", 3, "46341.25"), styledCell("A5", 2, "46341.99999998843"), `<c r="A6" t="d"><v>2026-11-16T10:11:12Z</v></c>`)),
		byHand("times", "Times of day.", `{"columns": [{"name": "n", "type": "time"}], "rows": [["06:00:00"], ["10:11:12"], ["00:00:00"], ["23:59:59.999"]]}`,
			column(styledCell("A2", 3, "0.25"), styledCell("A3", 11, "0.424444444444444"), styledCell("A4", 3, "0"), styledCell("A5", 3, "0.9999999999"))),
		byHand("durations", "Durations go beyond a day, so they are texts.", `{"columns": [{"name": "n", "type": "varchar"}], "rows": [["27:30:00"], ["01:00:00"], ["-02:00:00"]]}`,
			column(styledCell("A2", 4, "1.1458333333333333"), styledCell("A3", 9, "0.041666666666666664"), styledCell("A4", 4, "-0.08333333333333333"))),
		byHand("formulas", "What was computed counts; what was not is empty, and told.", `{"columns": [{"name": "id", "type": "bigint"}, {"name": "sum", "type": "bigint"}, {"name": "text", "type": "varchar"}],
			"rows": [[1, 3, "ab"], [2, null, ""], [3, null, "c"]], "doubts": [{"contains": "2 cells (the first is B3)"}]}`,
			row(1, textCell("A1", "id")+textCell("B1", "sum")+textCell("C1", "text"))+row(2, numberCell("A2", "1")+`<c r="B2"><f>A2+2</f><v>3</v></c><c r="C2" t="str"><f>"a"&amp;"b"</f><v>ab</v></c>`)+
				row(3, numberCell("A3", "2")+`<c r="B3"><f>A3+2</f></c><c r="C3" t="str"><f>""</f><v></v></c>`)+
				row(4, numberCell("A4", "3")+`<c r="B4"><f>SUM([1]Other!A1)</f><v/></c><c r="C4" t="str"><f>'file:///etc/[passwd]x'!A1</f><v>c</v></c>`)),
		byHand("errors", "Errors are empty, and told; a row of nothing else is none.", `{"columns": [{"name": "n", "type": "bigint"}, {"name": "b", "type": "boolean"}], "rows": [[1, true], [null, false]], "doubts": [{"contains": "3 cells (the first is A3)"}]}`,
			row(1, textCell("A1", "n")+textCell("B1", "b"))+row(2, numberCell("A2", "1")+`<c r="B2" t="b"><v>1</v></c>`)+row(3, `<c r="A3" t="e"><v>#N/A</v></c><c r="B3" t="b"><v>0</v></c>`)+
				row(4, `<c r="A4" t="e"><f>1/0</f><v>#DIV/0!</v></c><c r="B4" t="e"><v>#REF!</v></c>`)),
		byHand("no-positions", "Rows and cells without names follow each other, and a prefix does not matter.", plainRead,
			`<x:sheetData xmlns:x="a"><x:row><x:c t="inlineStr"><x:is><x:t>id</x:t></x:is></x:c><c t="inlineStr"><is><t>name</t></is></c></x:row>`+
				`<row><c><v>1</v></c><c t="inlineStr"><is><t>Ann</t></is></c></row><row><c><v>2</v></c><c t="inlineStr"><is><t>Bob</t></is></c></row></x:sheetData>`),
	}
}
