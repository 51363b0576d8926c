package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"quern.dev/quern/internal/build"
)

func (p *program) mcpCommand() *cobra.Command {
	return &cobra.Command{
		Use: "mcp", Short: "Serve the tools of the service to a program that starts this one (MCP over stdio)", Args: cobra.NoArgs,
		Long: `Serve the tools of the service to a program that starts this one: the Model Context Protocol over standard input and output.
It forwards each message to the service with your sign-in. docs/mcp.md has the configuration of hosts.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			token, err := p.tokens()
			if err != nil {
				return err
			}

			b := &bridge{address: p.server + "/api/v1/mcp", token: token, out: os.Stdout, running: map[string]context.CancelFunc{}}

			return b.run(cmd.Context(), os.Stdin)
		},
	}
}

// bridge forwards the messages of a host to the service, and the responses to the host.
type bridge struct {
	address string
	token   func(context.Context) (string, error)

	writing sync.Mutex
	out     io.Writer

	mutex   sync.Mutex
	version string                        // that initialize agreed on
	running map[string]context.CancelFunc // by the id of the request
}

// forwarded is the part of a message that decides how it is forwarded.
type forwarded struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method"`
	Params struct {
		Name      string                     `json:"name"`
		URI       string                     `json:"uri"`
		RequestID json.RawMessage            `json:"requestId"`
		Meta      map[string]json.RawMessage `json:"_meta"`
	} `json:"params"`
}

// requestsAtOnce limits the requests that are in progress.
const requestsAtOnce = 16

// run forwards messages until the host closes its end.
func (b *bridge) run(ctx context.Context, from io.Reader) error {
	var group sync.WaitGroup

	defer group.Wait()

	slots, lines := make(chan struct{}, requestsAtOnce), bufio.NewReader(from)

	for {
		line, err := lines.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 {
			var message forwarded
			if json.Unmarshal(line, &message) != nil {
				b.fail(nil, "The line is not a JSON-RPC message.")

				continue
			}

			if message.Method == "initialize" { // the other messages depend on its version
				b.forward(ctx, line, message)

				continue
			}

			if message.Method == "notifications/cancelled" {
				b.cancel(message.Params.RequestID)

				continue
			}

			slots <- struct{}{}

			group.Go(func() {
				defer func() { <-slots }()

				b.forward(ctx, line, message)
			})
		}

		if errors.Is(err, io.EOF) || ctx.Err() != nil {
			return nil
		}

		if err != nil {
			return err
		}
	}
}

// cancel ends a request. The service learns it from the end of the connection.
func (b *bridge) cancel(id json.RawMessage) {
	b.mutex.Lock()
	defer b.mutex.Unlock()

	if cancel := b.running[string(id)]; cancel != nil {
		cancel()
	}
}

// forward sends a message and writes the responses. A failure is a response too.
func (b *bridge) forward(ctx context.Context, line []byte, message forwarded) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	if message.ID != nil {
		b.mutex.Lock()
		b.running[string(message.ID)] = cancel
		b.mutex.Unlock()

		defer func() {
			b.mutex.Lock()
			delete(b.running, string(message.ID))
			b.mutex.Unlock()
		}()
	}

	err := b.send(ctx, line, message)
	if err != nil && ctx.Err() == nil && message.ID != nil {
		b.fail(message.ID, err.Error())
	}
}

func (b *bridge) send(ctx context.Context, line []byte, message forwarded) error {
	token, err := b.token(ctx)
	if err != nil {
		return fmt.Errorf("%w Sign in again with `quern login`.", err) //nolint:staticcheck,revive // a sentence for the user of the host
	}

	request, err := http.NewRequestWithContext(ctx, http.MethodPost, b.address, bytes.NewReader(line))
	if err != nil {
		return err
	}

	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	request.Header.Set("User-Agent", "quern/"+build.Read().Version)
	b.describe(request.Header, message)

	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("The service cannot be reached: %w", err) //nolint:staticcheck // a sentence for the user of the host
	}
	defer response.Body.Close()

	if strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		return b.stream(response.Body, message)
	}

	return b.whole(response)
}

// describe repeats parts of the message in the headers, as the protocol requires since 2026-07-28.
func (b *bridge) describe(header http.Header, message forwarded) {
	var version string
	if json.Unmarshal(message.Params.Meta["io.modelcontextprotocol/protocolVersion"], &version) == nil {
		header.Set("Mcp-Protocol-Version", version)
		header.Set("Mcp-Method", message.Method)

		if name := message.Params.Name + message.Params.URI; name != "" {
			header.Set("Mcp-Name", name)
		}

		return
	}

	b.mutex.Lock()
	defer b.mutex.Unlock()

	if b.version != "" {
		header.Set("Mcp-Protocol-Version", b.version)
	}
}

// stream writes each message of a stream as a line.
func (b *bridge) stream(from io.Reader, message forwarded) error {
	lines := bufio.NewReader(from)

	for {
		line, err := lines.ReadBytes('\n')
		if data, isData := bytes.CutPrefix(line, []byte("data:")); isData {
			data = bytes.TrimSpace(data)
			b.learn(message, data)
			b.write(data)
		}

		if errors.Is(err, io.EOF) {
			return nil
		}

		if err != nil {
			return fmt.Errorf("The connection to the service was lost: %w", err) //nolint:staticcheck // a sentence for the user of the host
		}
	}
}

// learn keeps the version of the response to initialize.
func (b *bridge) learn(message forwarded, response []byte) {
	var answer struct {
		Result struct {
			Version string `json:"protocolVersion"`
		} `json:"result"`
	}

	if message.Method != "initialize" || json.Unmarshal(response, &answer) != nil {
		return
	}

	b.mutex.Lock()
	defer b.mutex.Unlock()

	b.version = answer.Result.Version
}

// whole writes a response that is not a stream: a JSON-RPC message, or the error of REST.
func (b *bridge) whole(response *http.Response) error {
	const most = 1 << 20

	body, err := io.ReadAll(io.LimitReader(response.Body, most))
	if err != nil || len(bytes.TrimSpace(body)) == 0 {
		return err
	}

	var answer struct {
		Version string `json:"jsonrpc"`
		Code    string `json:"error_code"`
		Message string `json:"message"`
	}

	switch err := json.Unmarshal(body, &answer); {
	case err == nil && answer.Version != "":
		var flat bytes.Buffer
		if err := json.Compact(&flat, body); err != nil {
			return err
		}

		b.write(flat.Bytes())

		return nil
	case err == nil && response.StatusCode == http.StatusUnauthorized:
		return errors.New(answer.Code + ": " + answer.Message + " Sign in again with `quern login`.")
	case err == nil && answer.Code != "":
		return errors.New(answer.Code + ": " + answer.Message)
	default:
		return errors.New("The service answered " + response.Status + ".")
	}
}

func (b *bridge) write(message []byte) {
	b.writing.Lock()
	defer b.writing.Unlock()

	_, _ = b.out.Write(append(message, '\n')) // a host that has gone closes the input too
}

// fail writes a JSON-RPC error.
func (b *bridge) fail(id json.RawMessage, text string) {
	const internal = -32603

	if id == nil {
		id = json.RawMessage("null")
	}

	message, err := json.Marshal(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}{Version: "2.0", ID: id, Error: struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}{internal, text}})
	if err == nil {
		b.write(message)
	}
}
