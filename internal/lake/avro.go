package lake

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// avroMagic is how an Avro file begins.
const avroMagic = "Obj\x01"

var errAvro = errors.New("not an Avro file of Iceberg")

// avroType is a type of an Avro schema.
type avroType struct {
	kind     string // a primitive type, record, enum, fixed, array, map or union
	size     int    // of fixed
	fields   []avroField
	branches []*avroType // of a union; of an array or map, its one type of items
}

type avroField struct {
	name string
	of   *avroType
}

// parseAvroType reads a type. Named types can be used again by their name.
func parseAvroType(schema any, named map[string]*avroType) (*avroType, error) {
	switch s := schema.(type) {
	case string:
		if known, ok := named[s]; ok {
			return known, nil
		}

		return &avroType{kind: s}, nil
	case []any:
		t := &avroType{kind: "union"}

		for _, branch := range s {
			of, err := parseAvroType(branch, named)
			if err != nil {
				return nil, err
			}

			t.branches = append(t.branches, of)
		}

		return t, nil
	case map[string]any:
		return parseAvroObject(s, named)
	default:
		return nil, errAvro
	}
}

func parseAvroObject(s map[string]any, named map[string]*avroType) (*avroType, error) {
	kind, isText := s["type"].(string)
	if !isText {
		return parseAvroType(s["type"], named)
	}

	t := &avroType{kind: kind}
	if name, ok := s["name"].(string); ok {
		named[name] = t
	}

	if size, ok := s["size"].(float64); ok {
		t.size = int(size)
	}

	for _, items := range []string{"items", "values"} {
		if s[items] == nil {
			continue
		}

		of, err := parseAvroType(s[items], named)
		if err != nil {
			return nil, err
		}

		t.branches = append(t.branches, of)
	}

	fields, _ := s["fields"].([]any)
	for _, field := range fields {
		f, _ := field.(map[string]any)
		name, _ := f["name"].(string)

		of, err := parseAvroType(f["type"], named)
		if err != nil {
			return nil, err
		}

		t.fields = append(t.fields, avroField{name, of})
	}

	return t, nil
}

// avroCopy copies encoded values and replaces the addresses in them. After the first error it copies nothing more.
type avroCopy struct {
	in      []byte
	out     []byte
	err     error
	address func(string) string
	sizes   map[string]int64 // lengths of manifests by their new addresses
	last    string           // last address that was written
}

func (c *avroCopy) take(n int64) []byte {
	if n < 0 || n > int64(len(c.in)) {
		c.err = errAvro
	}

	if c.err != nil {
		return nil
	}

	taken := c.in[:n]
	c.in = c.in[n:]

	return taken
}

func (c *avroCopy) long() int64 {
	value, n := binary.Varint(c.in)
	if n <= 0 {
		c.err = errAvro

		return 0
	}

	c.in = c.in[n:]

	return value
}

func (c *avroCopy) putLong(n int64) { c.out = binary.AppendVarint(c.out, n) }

// value copies a value. field is the name of the field of a record that has it.
func (c *avroCopy) value(t *avroType, field string) {
	if c.err != nil {
		return
	}

	switch t.kind {
	case "null":
	case "boolean":
		c.out = append(c.out, c.take(1)...)
	case "float":
		c.out = append(c.out, c.take(4)...)
	case "double":
		c.out = append(c.out, c.take(8)...)
	case "fixed":
		c.out = append(c.out, c.take(int64(t.size))...)
	case "int", "long", "enum":
		c.number(field)
	case "bytes", "string":
		c.text(field)
	case "record":
		for _, f := range t.fields {
			c.value(f.of, f.name)
		}
	case "array", "map":
		c.blocks(t)
	case "union":
		branch := c.long()
		if branch < 0 || branch >= int64(len(t.branches)) {
			c.err = errAvro

			return
		}

		c.putLong(branch)
		c.value(t.branches[branch], field)
	default:
		c.err = fmt.Errorf("%w: the type %q", errAvro, t.kind)
	}
}

func (c *avroCopy) number(field string) {
	n := c.long()

	if field == "manifest_length" {
		if size, ok := c.sizes[c.last]; ok {
			n = size
		}
	}

	c.putLong(n)
}

func (c *avroCopy) text(field string) {
	text := c.take(c.long())

	if field == "file_path" || field == "manifest_path" || field == "referenced_data_file" {
		c.last = c.address(string(text))
		text = []byte(c.last)
	}

	c.putLong(int64(len(text)))
	c.out = append(c.out, text...)
}

// blocks copies the items of an array or a map. The lengths of blocks, which are optional, are left out, because they change.
func (c *avroCopy) blocks(t *avroType) {
	if len(t.branches) != 1 {
		c.err = errAvro
	}

	for c.err == nil {
		count := c.long()
		if count < 0 {
			count = -count
			_ = c.long()
		}

		c.putLong(count)

		if count == 0 {
			return
		}

		for ; count > 0 && c.err == nil; count-- {
			if t.kind == "map" {
				c.text("")
			}

			c.value(t.branches[0], "")
		}
	}
}

// avroFile is a file whose header was read.
type avroFile struct {
	header []byte // up to the end of the sync marker
	of     *avroType
	codec  string
	blocks []byte
}

func parseAvroFile(content []byte) (avroFile, error) {
	head := &avroCopy{in: content}
	if string(head.take(int64(len(avroMagic)))) != avroMagic {
		return avroFile{}, errAvro
	}

	properties := map[string]string{}

	for count := head.long(); count != 0 && head.err == nil; count = head.long() {
		if count < 0 {
			count = -count
			_ = head.long()
		}

		for ; count > 0 && head.err == nil; count-- {
			name := string(head.take(head.long()))
			properties[name] = string(head.take(head.long()))
		}
	}

	head.take(blockEnd)

	if head.err != nil {
		return avroFile{}, head.err
	}

	var schema any
	if err := json.Unmarshal([]byte(properties["avro.schema"]), &schema); err != nil {
		return avroFile{}, fmt.Errorf("%w: %w", errAvro, err)
	}

	of, err := parseAvroType(schema, map[string]*avroType{})

	return avroFile{header: content[:len(content)-len(head.in)], of: of, codec: properties["avro.codec"], blocks: head.in}, err
}

// moveAvro returns the manifest or manifest list with other addresses. Everything else stays as it is.
func moveAvro(content []byte, address func(string) string, sizes map[string]int64) ([]byte, error) {
	file, err := parseAvroFile(content)
	if err != nil {
		return nil, err
	}

	sync := file.header[len(file.header)-blockEnd:]
	made := bytes.Clone(file.header)

	for from := (&avroCopy{in: file.blocks}); len(from.in) > 0; {
		count := from.long()
		packed := from.take(from.long())

		if end := from.take(blockEnd); from.err != nil || !bytes.Equal(end, sync) {
			return nil, errAvro
		}

		plain, err := file.unpack(packed)
		if err != nil {
			return nil, err
		}

		c := &avroCopy{in: plain, address: address, sizes: sizes}
		for n := int64(0); n < count && c.err == nil; n++ {
			c.value(file.of, "")
		}

		if c.err != nil || len(c.in) > 0 {
			return nil, errors.Join(errAvro, c.err)
		}

		if packed, err = file.pack(c.out); err != nil {
			return nil, err
		}

		made = binary.AppendVarint(binary.AppendVarint(made, count), int64(len(packed)))
		made = append(append(made, packed...), sync...)
	}

	return made, nil
}

func (f avroFile) unpack(packed []byte) ([]byte, error) { return f.unpackAtMost(packed, maxMetadata) }

// unpackAtMost returns at most this many bytes of a block, so that a block that is longer ends in the middle of a value.
func (f avroFile) unpackAtMost(packed []byte, most int64) ([]byte, error) {
	switch f.codec {
	case "", "null":
		return packed, nil
	case "deflate":
		return io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), most))
	default:
		return nil, fmt.Errorf("%w: the codec %q", errAvro, f.codec)
	}
}

func (f avroFile) pack(plain []byte) ([]byte, error) {
	if f.codec != "deflate" {
		return plain, nil
	}

	var packed bytes.Buffer

	w, err := flate.NewWriter(&packed, flate.DefaultCompression)
	if err != nil {
		return nil, err
	}

	_, err = w.Write(plain)

	err = errors.Join(err, w.Close())

	return packed.Bytes(), err
}
