package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// hostileValues returns 100 texts that would change a statement, break a parser or exceed a type if a value were ever
// part of a statement.
func hostileValues() (values []string) {
	values = append(values,
		`'`, `''`, `'''`, `"`, `""`, "`", `\`, `\\`, `\'`, `\"`, `$1`, `$2`, `$name`, `?`, `??`, `:1`, `@x`, `%s`, `%00`, `{}`, `[]`, `()`, `)`, `(`, `;`, `;;`, `--`, `-- x`, `/*`, `*/`, `/* x */`, `#`,
		`'; DROP TABLE orders; --`, `'; DROP TABLE orders; SELECT '1`, `1; DROP TABLE orders`, `1 OR 1=1`, `' OR '1'='1`, `') OR ('1'='1`, `x' UNION SELECT * FROM orders --`, `1) UNION ALL SELECT 1 --`, //nolint:unqueryvet // a hostile value
		`(SELECT count(*) FROM orders)`, `SELECT 1`, `orders`, `"orders"`, `$$x$$`, `$tag$x$tag$`, `E'\n'`, `X'00'`, `U&'\0041'`, `'||getenv('HOME')||'`, `read_csv('/etc/passwd')`, `/etc/passwd`, `../../etc/passwd`,
		"\x00", "a\x00b", "\n", "\r\n", "\t", "a\nb", " ", "", "\u007f", "\u0085", "\u2028", "\ufeff", "\u202e", "é", "e\u0301", "ß", "𝄞", "漢字", "👩‍👩‍👧", "\u200b", "＇", "ʼ", "İ", //nolint:gosmopolitan // a hostile value
		"NULL", "null", "true", "TRUE", "yes", "0", "-0", "00", "+1", "1_000", "0x10", "1e3", "1e400", "NaN", "Infinity", "-inf",
		"9007199254740993", "9223372036854775807", "9223372036854775808", "-9223372036854775809", strings.Repeat("9", 38), strings.Repeat("9", 39), "0."+strings.Repeat("1", 50),
		"2026-02-28", "2026-02-30", "0000-00-00", "0001-01-01", "9999-12-31", "10000-01-01", "-0001-01-01", "infinity", "epoch", "today()",
		"00:00:00", "24:00:00", "23:59:59.9999999", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00+14:00", "2026-01-01 25:00:00",
		strings.Repeat("x", 1_000_000), strings.Repeat("'", 400_000), strings.Repeat("9", 100_000), strings.Repeat("\u00e9", 300_000),
	)

	return values
}

// TestParameters checks that no value changes a statement: it comes back as itself, or its field is refused.
func TestParameters(t *testing.T) {
	t.Parallel()

	s := start(t, "QUERN_RATE_LIMIT=100000", "QUERN_RATE_BURST=100000")
	d := newFilled(t, s, "ada", s.newKey().token("ada"))

	d.loaded("", "id,name,amount,day\n1,north,1.50,2026-01-01\n2,south,2.50,2026-02-01\n3,it's,3.50,2026-03-01\n")

	values := hostileValues()
	require.GreaterOrEqual(t, len(values), 100)

	for _, kind := range []string{"", "varchar", "boolean", "integer", "bigint", "double", "decimal(18,4)", "decimal(38,0)", "date", "time", "timestamp", "json", "'; DROP TABLE orders"} {
		met := 0

		for i, value := range values {
			given := encode(t, value)
			if kind != "" {
				given = `{"type": ` + encode(t, kind) + `, "value": ` + given + `}`
			}

			style := [][2]string{{"$1", "[" + given + "]"}, {"$value", `{"value": ` + given + `}`}, {"?", "[" + given + "]"}}[i%3]

			if d.unchanged(t, style[0], style[1], kind, value) {
				met++
			}
		}

		if kind == "json" || strings.HasPrefix(kind, "'") {
			require.Zero(t, met, "there is no such type")
		} else {
			require.Positive(t, met, "a value that came back")
		}
	}

	d.numbers()
	d.forms()
	d.faults()

	for line := range strings.Lines(s.log()) {
		require.NotContains(t, line, "DROP TABLE")
		require.NotContains(t, line, "secret4711")
	}
}

// unchanged runs a statement with one value. It reports whether the value came back; otherwise its field was refused.
func (d *filled) unchanged(t *testing.T, parameter, parameters, kind, value string) bool {
	t.Helper()

	statement := `SELECT ` + parameter + ` AS v, count(*) AS n FROM orders WHERE id > 0`
	asked := send(t, d.question(statement, `"parameters": `+parameters))

	short := fmt.Sprintf("%s %.60q", kind, value)

	if asked.status == http.StatusUnprocessableEntity {
		var refused struct {
			ErrorCode string `json:"error_code"`
			SubErrors []struct {
				Code, Message string
			} `json:"sub_errors"`
		}
		asked.json(t, &refused)
		require.Equal(t, "VALIDATION_FAILED", refused.ErrorCode, short)
		require.Len(t, refused.SubErrors, 1, short)
		require.Contains(t, []string{"parameters.0", "parameters.value", "parameters.0.value", "parameters.value.value", "parameters.0.type", "parameters.value.type"}, refused.SubErrors[0].Code, short)

		return false
	}

	require.Equal(t, http.StatusOK, asked.status, "%s: %.300s", short, asked.body)

	var found struct {
		Columns []struct{ Name, Type string }
		Data    []struct {
			V any
			N int
		}
		Metadata struct{ ExecutedQuery string }
	}

	decoder := json.NewDecoder(strings.NewReader(asked.body))
	decoder.UseNumber()
	require.NoError(t, decoder.Decode(&found))
	require.Equal(t, statement, found.Metadata.ExecutedQuery)
	require.Len(t, found.Columns, 2, short)
	require.Len(t, found.Data, 1, short)
	require.Equal(t, 3, found.Data[0].N, short)
	require.True(t, same(kind, value, fmt.Sprint(found.Data[0].V)), "%s came back as %.60v", short, found.Data[0].V)

	return true
}

// same reports whether two texts are the same value of a type.
func same(kind, a, b string) bool {
	switch kind {
	case "", "varchar", "date":
		return a == b
	case "boolean":
		return strings.EqualFold(a, b)
	case "double":
		x, _ := strconv.ParseFloat(a, 64)
		y, err := strconv.ParseFloat(b, 64)

		return err == nil && (x == y || math.IsNaN(x) && math.IsNaN(y))
	case "time", "timestamp":
		return moment(a) != "" && moment(a) == moment(b)
	default:
		x, isX := new(big.Rat).SetString(a)
		y, isY := new(big.Rat).SetString(b)

		return isX && isY && x.Cmp(y) == 0
	}
}

func moment(text string) string {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02", "15:04:05.999999999"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UTC().Format(time.RFC3339Nano)
		}
	}

	return ""
}

// numbers sends values as JSON numbers, booleans and null.
func (d *filled) numbers() {
	d.t.Helper()

	for given, want := range map[string]string{
		"0": "0 integer", "-1": "-1 integer", "2147483647": "2147483647 integer", "2147483648": "2147483648 bigint",
		"9007199254740993": "9007199254740993 bigint", "9223372036854775808": "9223372036854775808 decimal(19,0)",
		strings.Repeat("9", 38): strings.Repeat("9", 38) + " decimal(38,0)", "0.1": "0.1 decimal(1,1)", "-12.50": "-12.5 decimal(4,2)", "1e3": "1000.0 double",
		"0.12345678901234567890": "0.12345678901234567890 decimal(20,20)",
		"true":                   "true boolean", "false": "false boolean", "null": "<nil> integer",
		strings.Repeat("9", 39): "", "1e400": "", "1e-400": "", "0." + strings.Repeat("1", 39): "", strings.Repeat("9", 100_000): "", "[1]": "", `{"a": 1}`: "", `{"type": "date"}`: "", `{"value": 1}`: "",
		`{"type": "date", "value": 20260101}`: "", `{"type": "bigint", "value": 1, "more": 2}`: "", `{"type": "", "value": 1}`: "", `{"type": "bigint", "value": [1]}`: "",
		`{"type": "bigint", "value": true}`: "", `{"type": "varchar", "value": 1}`: "", `{"type": "date", "value": null}`: "<nil> integer",
	} {
		asked := d.ask(`SELECT $1 AS v`, `"parameters": [`+given+`]`)

		if want == "" {
			require.Equal(d.t, http.StatusUnprocessableEntity, asked.status, "%.60s: %.200s", given, asked.body)
			require.Contains(d.t, asked.body, `"code":"parameters.0`, "%.60s", given)

			continue
		}

		found := d.resultOf(asked)
		decoder := json.NewDecoder(strings.NewReader(asked.body))
		decoder.UseNumber()

		var exact struct{ Data []struct{ V any } }
		require.NoError(d.t, decoder.Decode(&exact))
		require.Equal(d.t, want, fmt.Sprintf("%v %s", exact.Data[0].V, found.Columns[0].Type), given)
	}
}

// forms checks that every form of a result uses the parameters, and that rows keep their provenance.
func (d *filled) forms() {
	d.t.Helper()

	const statement = `SELECT id, name FROM orders WHERE name = $who OR day >= $since ORDER BY id LIMIT $most`

	parameters := `"parameters": {"who": "it's", "since": "2026-02-01", "most": 5}`

	found := d.result(statement, parameters)
	require.Equal(d.t, [][]any{{2.0, "south"}, {3.0, "it's"}}, found.rows())
	require.Contains(d.t, fmt.Sprint(found.Data[0]["__metadata"]), "source")

	require.Equal(d.t, "id,name\n2,south\n3,it's\n", d.ask(statement, parameters, "Accept: text/csv").body)
	require.NotEmpty(d.t, d.ask(statement, parameters, "Accept: application/vnd.apache.arrow.stream").body)
	require.True(d.t, strings.HasPrefix(d.ask(statement, parameters, "Accept: application/vnd.apache.parquet").body, "PAR1"))
	require.NotEmpty(d.t, d.result(statement, parameters+`, "explain": true`).Data)

	require.Equal(d.t, http.StatusRequestEntityTooLarge, d.ask(`SELECT $1`, `"parameters": ["`+strings.Repeat("x", 2<<20)+`"]`).status)
	require.Equal(d.t, 1000, d.result(`SELECT unnest([`+strings.Repeat("?, ", 999)+`?])`, `"parameters": [`+strings.Repeat("1, ", 999)+`1]`).Metadata.Count)
	require.Contains(d.t, d.ask(`SELECT 1`, `"parameters": [`+strings.Repeat("1, ", 1000)+`1]`).body, `"parameters","message":"must have at most 1000 entries"`)
}

// faults checks what is said about parameters that do not belong to the statement.
func (d *filled) faults() {
	d.t.Helper()

	for _, test := range []struct{ statement, parameters, fields string }{
		{`SELECT $1`, `null`, "parameters.0"},
		{`SELECT ?, ?`, `[1]`, "parameters.1"},
		{`SELECT ?`, `[1, 2, 3]`, "parameters.1 parameters.2"},
		{`SELECT $2`, `[1, 2]`, "parameters.0"},
		{`SELECT $a, $b`, `{"a": 1}`, "parameters.b"},
		{`SELECT $a`, `{"a": 1, "secret4711'": 2}`, "parameters"},
		{`SELECT $a`, `{"b": 1}`, "parameters.b parameters.a"},
		{`SELECT $a`, `{"a": 1, "A": 2}`, "parameters.a"},
		{`SELECT $a`, `[1]`, "parameters"},
		{`SELECT ?`, `{"a": 1}`, "parameters"},
		{`SELECT $a, ?`, `[1]`, "parameters"},
		{`SELECT 1`, `[1]`, "parameters"},
		{`SELECT $1`, `"x"`, "parameters"},
		{`SELECT $1, $2`, `[{"type": "date", "value": "secret4711"}, {"type": "bigint", "value": "secret4711"}]`, "parameters.0 parameters.1"},
		{`SELECT * FROM nosuch WHERE id = $1`, `[{"type": "bigint", "value": "secret4711"}]`, "parameters.0"},
	} {
		asked := d.ask(test.statement, `"parameters": `+test.parameters)
		require.Equal(d.t, http.StatusUnprocessableEntity, asked.status, asked.body)
		require.NotContains(d.t, asked.body, "secret4711")

		var refused struct {
			ErrorCode string                           `json:"error_code"`
			SubErrors []struct{ Code, Message string } `json:"sub_errors"`
		}
		asked.json(d.t, &refused)

		var fields []string
		for _, sub := range refused.SubErrors {
			require.NotEmpty(d.t, sub.Message)
			fields = append(fields, sub.Code)
		}

		require.Equal(d.t, "VALIDATION_FAILED", refused.ErrorCode, test.statement)
		require.Equal(d.t, test.fields, strings.Join(fields, " "), "%s %s: %s", test.statement, test.parameters, asked.body)
	}

	// A text that the engine cannot convert is told to the caller alone.
	asked := d.ask(`SELECT * FROM orders WHERE id = $1`, `"parameters": ["secret4711"]`) //nolint:unqueryvet // a statement of a user
	require.Equal(d.t, http.StatusUnprocessableEntity, asked.status, asked.body)
	require.Contains(d.t, asked.body, "QUERY_INVALID")
	require.Contains(d.t, asked.body, "secret4711")

	// A parameter is never a name, a keyword or a file.
	for _, statement := range []string{`SELECT * FROM $1`, `SELECT * FROM read_csv($1)`, `SELECT * FROM query($1)`, `SELECT getenv($1)`, `SELECT * FROM orders ORDER BY $1`, `$1`} {
		asked := d.ask(statement, `"parameters": ["orders"]`)
		require.Equal(d.t, http.StatusUnprocessableEntity, asked.status, asked.body)
		require.Contains(d.t, asked.body, "QUERY_INVALID", statement)
	}
}
