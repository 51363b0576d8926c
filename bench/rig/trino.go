package rig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/stack"
)

// Cluster is the stack's Trino, which `stack/up trino` starts, with two catalogs over the tables of one service: one that the service
// uses, and one that reads the standard rows of its database, as any program may.
type Cluster struct {
	URL          string
	Through, Raw string // names of the catalogs

	settings []string
}

const trinoUser = "quern" // may create catalogs

// NewCluster finds the cluster and chooses the settings of a service on it.
func NewCluster(ctx context.Context) (*Cluster, error) {
	address, err := stack.Lookup("QUERN_TEST_TRINO_URL")
	if err != nil {
		return nil, fmt.Errorf("%w; start Trino with stack/up trino", err)
	}

	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}

	listen := listener.Addr().String()
	if err := listener.Close(); err != nil {
		return nil, err
	}

	name := func() string { return "quern_" + strings.ReplaceAll(uuid.NewString(), "-", "") }
	c := &Cluster{URL: address, Through: name(), Raw: name()}
	secret := strings.Repeat("s", 40)
	c.settings = []string{
		"QUERN_CATALOG_LISTEN=" + listen, "QUERN_CATALOG_SECRET=" + secret, "QUERN_TRINO_URL=" + c.URL, "QUERN_TRINO_CATALOG=" + c.Through,
		"QUERN_TRINO_MEMORY=1GiB", "QUERN_TRINO_TIMEOUT=30s",
	}

	if _, err := c.Rows(ctx, "SELECT 1"); err != nil {
		return nil, fmt.Errorf("%w; start Trino with stack/up trino", err)
	}

	return c, c.create(ctx, c.Through, map[string]string{
		"iceberg.catalog.type": "rest", "iceberg.rest-catalog.uri": "http://" + listen, "iceberg.rest-catalog.security": "OAUTH2", "iceberg.rest-catalog.oauth2.token": secret,
		"iceberg.rest-catalog.oauth2.token-refresh-enabled": "false", "iceberg.rest-catalog.session": "USER", "iceberg.rest-catalog.session-timeout": "1m",
		"iceberg.rest-catalog.view-endpoints-enabled": "false",
	})
}

// Settings returns the settings of a service that uses the cluster.
func (c *Cluster) Settings() []string { return c.settings }

// Read creates a catalog in Trino that reads the tables directly from the service's database and object store.
func (c *Cluster) Read(ctx context.Context, s *Service) error {
	database, err := url.Parse(s.Database)
	if err != nil {
		return err
	}

	password, _ := database.User.Password()

	return c.create(ctx, c.Raw, map[string]string{
		"iceberg.catalog.type": "jdbc", "iceberg.jdbc-catalog.driver-class": "org.postgresql.Driver", "iceberg.jdbc-catalog.connection-url": "jdbc:postgresql://" + database.Host + database.Path,
		"iceberg.jdbc-catalog.connection-user": database.User.Username(), "iceberg.jdbc-catalog.connection-password": password,
		"iceberg.jdbc-catalog.catalog-name": "quern", "iceberg.jdbc-catalog.schema-version": "V1", "iceberg.jdbc-catalog.default-warehouse-dir": "s3://" + s.Location.Bucket,
	})
}

func (c *Cluster) create(ctx context.Context, name string, properties map[string]string) error {
	for property, setting := range map[string]string{"endpoint": "ENDPOINT", "region": "REGION", "aws-access-key": "ACCESS_KEY", "aws-secret-key": "SECRET_KEY"} {
		value, err := stack.Lookup("QUERN_TEST_S3_" + setting)
		if err != nil {
			return err
		}

		properties["s3."+property] = value
	}

	properties["s3.path-style-access"], properties["fs.native-s3.enabled"] = "true", "true"
	properties["iceberg.security"], properties["iceberg.metadata-cache.enabled"] = "read_only", "false"

	var list []string
	for property, value := range properties {
		list = append(list, fmt.Sprintf(`"%s" = '%s'`, property, value))
	}

	_, err := c.Rows(ctx, "CREATE CATALOG "+name+" USING iceberg WITH ("+strings.Join(list, ", ")+")")

	return err
}

// Drop removes the catalogs.
func (c *Cluster) Drop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()

	for _, name := range []string{c.Through, c.Raw} {
		if _, err := c.Rows(ctx, "DROP CATALOG IF EXISTS "+name); err != nil {
			fmt.Fprintln(os.Stderr, "dropping a catalog of Trino:", err)
		}
	}
}

// Rows runs a statement over Trino's protocol, with as few requests as the protocol allows, and returns the rows.
func (c *Cluster) Rows(ctx context.Context, statement string) (rows [][]any, err error) {
	method, address, body := http.MethodPost, c.URL+"/v1/statement", statement

	for address != "" {
		request, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
		if err != nil {
			return nil, err
		}

		request.Header.Set("X-Trino-User", trinoUser)
		request.Header.Set("X-Trino-Client-Capabilities", "PARAMETRIC_DATETIME")

		content, err := Get(request)
		if err != nil {
			return nil, err
		}

		var page struct {
			NextURI string
			Data    [][]any
			Error   *struct{ Message string }
		}

		if err := json.Unmarshal(content, &page); err != nil {
			return nil, err
		}

		if page.Error != nil {
			return nil, errors.New(page.Error.Message)
		}

		rows = append(rows, page.Data...)
		method, address, body = http.MethodGet, page.NextURI, ""
	}

	return rows, nil
}

// SetEngine sets the engine of a dataset in the namespace ada/bench.
func (b *Bench) SetEngine(ctx context.Context, q *Quernd, dataset, engine string) error {
	command := exec.CommandContext(ctx, b.Quernd, "engine", "set", "ada/bench/"+dataset, engine)
	command.Env = q.environment

	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("quernd engine set: %w\n%s", err, out)
	}

	return nil
}
