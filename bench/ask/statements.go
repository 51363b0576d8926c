package ask

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync/atomic"
)

// statements is a proxy in front of PostgreSQL that counts executed statements.
type statements struct {
	address string // address of the database through this proxy
	count   atomic.Int64
}

// startStatements starts the proxy; stop ends it.
func startStatements(ctx context.Context, database string) (s *statements, stop func(), err error) {
	u, err := url.Parse(database)
	if err != nil {
		return nil, nil, err
	}

	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}

	server := u.Host
	u.Host = listener.Addr().String()
	s = &statements{address: u.String()}

	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}

			go s.forward(ctx, client, server)
		}
	}()

	return s, func() { _ = listener.Close() }, nil
}

// forward copies data between a client and the server until either side closes its connection.
func (s *statements) forward(ctx context.Context, client net.Conn, address string) {
	defer client.Close()

	server, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return
	}
	defer server.Close()

	go func() {
		_, _ = io.Copy(client, server)
		_ = client.Close()
	}()

	_ = s.watch(bufio.NewReader(client), server) // the error only says that the connection has ended
}

// watch forwards the messages of the client: first a message without a type, then messages with a type and a length.
func (s *statements) watch(client *bufio.Reader, server net.Conn) error {
	for first := true; ; first = false {
		head := make([]byte, 5)
		if first {
			head = head[1:]
		}

		if _, err := io.ReadFull(client, head); err != nil {
			return err
		}

		if !first && (head[0] == 'E' || head[0] == 'Q') { // Execute, and a simple query
			s.count.Add(1)
		}

		size := int64(binary.BigEndian.Uint32(head[len(head)-4:])) - 4
		if size < 0 {
			return fmt.Errorf("a message of %d bytes", size)
		}

		message := make([]byte, int64(len(head))+size)
		copy(message, head)

		if _, err := io.ReadFull(client, message[len(head):]); err != nil {
			return err
		}

		if _, err := server.Write(message); err != nil {
			return err
		}
	}
}
