package document

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"net/textproto"
	"strings"

	"golang.org/x/net/html/charset"
)

const (
	maxMails     = 5   // mails in mails, and parts in parts
	maxMailParts = 200 // of a mail, with those of the mails in it
)

// readMail reads the text of a mail, and its attachments that are documents.
func (r *reading) readMail(data []byte) error {
	message, err := mail.ReadMessage(bytes.NewReader(data))
	if err != nil {
		return invalid("The mail is broken: %s.", shorten(err.Error()))
	}

	page := &composer{}

	var head strings.Builder

	for _, name := range []string{"From", "To", "Cc", "Date", "Subject"} {
		if text := decodedHeader(message.Header.Get(name)); text != "" {
			head.WriteString(name + ": " + text + "\n")
		}
	}

	page.add(Paragraph, head.String())

	letter := &letter{reading: r, page: page}
	if err := letter.part(textproto.MIMEHeader(message.Header), message.Body, 0); err != nil {
		return err
	}

	if err := r.add(page); err != nil {
		return err
	}

	for _, one := range letter.attached {
		if err := r.attachment(one); err != nil {
			return within(err, "The attachment "+shorten(one.name))
		}
	}

	return nil
}

// letter is a mail that is being read.
type letter struct {
	*reading

	page     *composer
	attached []attachment
}

type attachment struct {
	name string
	data []byte
}

// part reads a part of a mail: its text goes to the page, and its attachments are kept.
func (l *letter) part(header textproto.MIMEHeader, body io.Reader, depth int) error {
	if l.parts++; l.parts > maxMailParts {
		return exceeded("The mail has more than %d parts.", maxMailParts)
	}

	if depth > maxMails {
		return exceeded("The parts of the mail are nested in more than %d levels.", maxMails)
	}

	kind, parameters, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		kind, parameters = "text/plain", nil
	}

	switch kind {
	case "multipart/encrypted", "application/pkcs7-mime", "application/x-pkcs7-mime":
		return invalid("The mail is encrypted. Save it decrypted.")
	}

	if strings.HasPrefix(kind, "multipart/") {
		return l.several(kind, multipart.NewReader(body, parameters["boundary"]), depth)
	}

	data, err := decodedBody(header.Get("Content-Transfer-Encoding"), body)
	if err != nil {
		return err
	}

	disposition, names, _ := mime.ParseMediaType(header.Get("Content-Disposition"))
	name := decodedHeader(firstOf(names["filename"], parameters["name"]))

	switch isAttached := disposition == "attachment" || name != "" || kind == "message/rfc822"; {
	case isAttached:
		l.attached = append(l.attached, attachment{firstOf(name, kind), data})

		return nil
	case kind == "text/html":
		return l.composeHTML(l.page, data, header.Get("Content-Type"))
	case strings.HasPrefix(kind, "text/"):
		text, err := decodedText(data, parameters["charset"])
		if err == nil {
			l.compose(l.page, text)
		}

		return err
	default: // a picture in the text
		return nil
	}
}

// several reads the parts of a part. Of alternatives it reads HTML if there is one, because it has the tables, otherwise the first.
func (l *letter) several(kind string, parts *multipart.Reader, depth int) error {
	type alternative struct {
		header textproto.MIMEHeader
		data   []byte
	}

	var alternatives []alternative

	for {
		part, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			break
		}

		if err != nil {
			return invalid("The mail is broken: its parts end too early.")
		}

		if kind != "multipart/alternative" {
			if err := l.part(part.Header, part, depth+1); err != nil {
				return err
			}

			continue
		}

		data, err := io.ReadAll(part)
		if err != nil {
			return invalid("The mail is broken: %s.", shorten(err.Error()))
		}

		if alternatives = append(alternatives, alternative{part.Header, data}); len(alternatives) > maxMailParts {
			return exceeded("The mail has more than %d parts.", maxMailParts)
		}
	}

	if len(alternatives) == 0 {
		return nil
	}

	chosen := alternatives[0]

	for _, one := range alternatives {
		if kind := strings.ToLower(one.header.Get("Content-Type")); strings.HasPrefix(kind, "text/html") || strings.HasPrefix(kind, "multipart/related") {
			chosen = one
		}
	}

	return l.part(chosen.header, bytes.NewReader(chosen.data), depth+1)
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}

	return b
}

// attachment reads an attachment that is a document. Others are only named.
func (r *reading) attachment(a attachment) error {
	if r.depth++; r.depth > maxMails {
		return exceeded("Mails are nested in more than %d levels.", maxMails)
	}
	defer func() { r.depth-- }()

	kind := Detect(a.data[:min(len(a.data), 64<<10)])
	if kind == "" && IsWord(bytes.NewReader(a.data), int64(len(a.data))) {
		kind = Word
	}

	if kind == "" {
		r.Omitted = append(r.Omitted, shorten(a.name))

		return nil
	}

	return r.any(kind, a.data)
}

func decodedBody(encoding string, body io.Reader) ([]byte, error) {
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "base64":
		body = base64.NewDecoder(base64.StdEncoding, body)
	case "quoted-printable":
		body = quotedprintable.NewReader(body)
	}

	data, err := io.ReadAll(body)
	if err != nil {
		return nil, invalid("The mail is broken: a part of it cannot be decoded.")
	}

	return data, nil
}

func decodedText(data []byte, label string) (string, error) {
	if label == "" {
		label = "utf-8"
	}

	reader, err := charset.NewReaderLabel(label, bytes.NewReader(data))
	if err != nil {
		return "", invalid("The text of the mail has the encoding %q, which is not known.", shorten(label))
	}

	text, err := io.ReadAll(io.LimitReader(reader, maxMarkup+1))

	switch {
	case err != nil:
		return "", invalid("The text of the mail is not in the encoding %s.", shorten(label))
	case len(text) > maxMarkup:
		return "", exceeded("The text of the mail has more than %d bytes.", maxMarkup)
	case strings.Count(string(text), "\ufffd") > bytes.Count(data, []byte("\ufffd")):
		return "", invalid("The text of the mail is not in the encoding %s.", shorten(label))
	}

	return string(text), nil
}

func decodedHeader(text string) string {
	decoder := mime.WordDecoder{CharsetReader: charset.NewReaderLabel}

	decoded, err := decoder.DecodeHeader(text)
	if err != nil {
		return oneLine(text)
	}

	return oneLine(decoded)
}
