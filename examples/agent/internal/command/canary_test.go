// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/belayproject/belay/checkpoint"
	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/configsynctest"
	"github.com/belayproject/belay/configsync/kubelet"
	"github.com/belayproject/belay/configsync/restart"
	"github.com/belayproject/belay/examples/agent/internal/metrics"
	"github.com/belayproject/belay/examples/agent/internal/wire"
	"github.com/belayproject/belay/examples/internal/agent/history"
	"github.com/belayproject/belay/examples/internal/agent/settings"
	"github.com/belayproject/belay/internal/testproc"
	"github.com/belayproject/belay/lkg"
)

// canary begins every secret of the inputs; what follows says which input it was.
const canary = "cAnArY51e0"

// A cage is one set of inputs with canaries in them.
type cage struct {
	name   string
	config string            // what is behind the head of the config
	others map[string]string // other entries of its object
	files  map[string]string // of the node; they are there before its flags are read
	late   map[string]string // files that come after the first start
	flags  []string          // DIR is the directory of the files
	says   string            // what the node must say; it shows that the case has come as far as it should
}

// cages has one for each part that looks at a config, a layer, a key or what a program writes.
func cages() []cage {
	value, trusted := "clusterDomain: "+canary+"-config\n", "-----BEGIN PUBLIC KEY-----\n"+base64.StdEncoding.EncodeToString([]byte(canary+"-key"))+"\n-----END PUBLIC KEY-----\n"
	tells := "#!/bin/sh\ncat $1\ncat $1 >&2\necho " + canary + "-said; echo " + canary + "-err >&2\nexit "
	program := []string{"--prove-command=DIR/check", "--prove-arg={config}"}
	return []cage{
		{name: "taken", config: value + "# " + canary + "-comment\n", others: map[string]string{"another": canary + "-entry"}, says: "using current (UID: "},
		{name: "no such field", config: value + "noSuchField: " + canary + "-unknown\n", says: "failed to load current"},
		{name: "no document", config: value + "\t" + canary + "-tab", says: "failed to load current"},
		{name: "a rule", config: value + "staticPodPath: " + canary + "-relative/dir\n", says: "failed to validate current"},
		{name: "overlaid", config: value + "clusterDNS: " + canary + "-no-list\n", files: map[string]string{"node.yaml": "clusterDomain: " + canary + "-node\n"},
			flags: []string{"--node-config=DIR/node.yaml"}, says: "failed to load current"},
		{name: "a bad drop-in of others", config: value, files: map[string]string{"d/95.conf": local0 + "clusterDomain: " + canary + "-node\n"},
			late:  map[string]string{"d/99.conf": "kind: " + canary + "Kind\nvolumePluginDir: " + canary + "-late\n"},
			flags: []string{"--config-dir=DIR/d"}, says: "what this node lays around it"},
		{name: "forbidden", config: value, files: map[string]string{"policy.yaml": "apiVersion: belay.dev/v1alpha1\nkind: FieldPolicy\ndefault: Restart\nrules:\n- {path: clusterDomain, action: Forbid}\n"},
			flags: []string{"--field-policy=DIR/policy.yaml"}, says: "failed to validate current"},
		{name: "not signed", config: value, files: map[string]string{"keys/release.pem": releaseKey()}, others: map[string]string{"signatures": "# " + canary + "-remark\nrelease " + canary + "-signature\n"},
			flags: []string{"--trusted-keys=DIR/keys"}, says: "failed to validate current"},
		{name: "bad keys", config: value, files: map[string]string{"keys/release.pem": releaseKey()}, late: map[string]string{"keys/other.pem": trusted},
			flags: []string{"--trusted-keys=DIR/keys"}, says: "the object could not be judged"},
		{name: "refused by a program", config: value, files: map[string]string{"check": tells + "65\n"}, flags: program, says: "failed to validate current"},
		{name: "a program in trouble", config: value, files: map[string]string{"check": tells + "3\n"}, flags: program, says: "the program ended with exit status 3"},
		{name: "a program that can't begin", config: value, files: map[string]string{"check": "#!/no/such/" + canary + "-interpreter\n"}, flags: program, says: "the object could not be judged"},
	}
}

// S-CS-07: no value of a config, a layer, a key or what a program writes is in the status, the log, the metrics, the
// journal, or what explain, status, doctor, check and guard say.
func TestNoCanaryIsTold(t *testing.T) {
	for _, c := range cages() {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			a := newAviary(t, c)
			a.live(t)
			a.dead(t)
			for output, text := range a.said {
				if at := strings.Index(text, canary); at >= 0 {
					t.Errorf("%s has %q:\n%s", output, text[at:min(at+len(canary)+12, len(text))], text)
				}
				if len(text) == 0 {
					t.Errorf("%s is empty", output)
				}
			}
			if len(a.said) < 10 {
				t.Errorf("%d outputs were looked at, want all", len(a.said))
			}
		})
	}
}

// An aviary is a node whose inputs all have canaries in them, and what was said about it everywhere.
type aviary struct {
	cage
	dir   string
	flags []string
	said  map[string]string
}

func newAviary(t *testing.T, c cage) *aviary {
	t.Helper()
	a := &aviary{cage: c, dir: t.TempDir(), said: map[string]string{}}
	a.write(t, map[string]string{"init.yaml": local0 + "volumePluginDir: /" + canary + "-init # " + canary + "-init-comment\n"})
	a.write(t, c.files)
	a.flags = []string{"--state-dir=" + a.dir + "/state", "--init-config=" + a.dir + "/init.yaml"}
	for _, f := range c.flags {
		a.flags = append(a.flags, strings.ReplaceAll(f, "DIR", a.dir))
	}
	return a
}

func (a *aviary) write(t *testing.T, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(a.dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o700)); err != nil {
			t.Fatal(err)
		}
	}
}

// live has an agent's Syncer meet the config, and keeps what it says.
func (a *aviary) live(t *testing.T) {
	t.Helper()
	s := &settings.Run{}
	f := pflag.NewFlagSet("run", pflag.ContinueOnError)
	s.AddFlags(f)
	if err := errors.Join(f.Parse(append(a.flags, "--retry-min=10ms")), s.Local.Validate()); err != nil {
		t.Fatal(err)
	}
	store, err := checkpoint.Open(s.StateDir, checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore(t, store)
	o, err := wire.Options(s, store, nil, func() *kubelet.Config { return nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	journal, err := history.Open(t.Context(), store, nil)
	if err != nil {
		t.Fatal(err)
	}
	o.Probes, o.Restarter = nil, restart.Exit{}
	rec, server := &configsynctest.Recorder{}, a.server()
	o.Source, o.Fetcher, o.Reporter = server, server, configsync.Joined(o.Reporter, journal, rec)
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(7)))
	last := a.meets(klog.NewContext(t.Context(), logger), t, o, rec)
	a.said["the status"], a.said["the journal"] = asJSON(t, rec.All()), asJSON(t, journal.Entries())+"totals"
	a.said["the log"] = logger.GetSink().(ktesting.Underlier).GetBuffer().String()
	a.said["the metrics"] = scraped(t, metrics.Handler(func() configsync.Status { return last }, journal.Totals, func() bool { return false }))
}

func closeStore(t *testing.T, store *checkpoint.Store) {
	t.Helper()
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}

// server has the config, and names it.
func (a *aviary) server() *configsynctest.Server {
	server := &configsynctest.Server{}
	data := map[string]string{"kubelet": local0 + a.config}
	for k, v := range a.others {
		data[k] = v
	}
	server.Put("ns", "c", data, true)
	server.Name(&configsync.Spec{Namespace: "ns", Name: "c", Digest: configsync.DigestOf(data)})
	return server
}

// meets runs a Syncer, once more where it exits to adopt the config, until it says what it should.
func (a *aviary) meets(ctx context.Context, t *testing.T, o configsync.Options[*kubelet.Config], rec *configsynctest.Recorder) configsync.Status {
	t.Helper()
	s, err := configsync.New(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	var exit *restart.ExitError
	for again := true; again; {
		if _, err := s.Bootstrap(ctx, lkg.Exit{}); err != nil {
			t.Fatal(err)
		}
		a.write(t, a.late)
		running, stop := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() { done <- s.Run(running) }()
		poll := testproc.Poll(time.Minute, func() error {
			select {
			case err := <-done:
				done <- err
				return nil
			default:
			}
			if last := rec.Last(); !strings.Contains(asJSON(t, last), a.says) {
				return fmt.Errorf("it says %+v, want %q", last, a.says)
			}
			return nil
		})
		stop()
		err := <-done
		if again = errors.As(err, &exit); poll != nil || err != nil && !again {
			t.Fatalf("%v; Run = %v", poll, err)
		}
	}
	if last := rec.Last(); !strings.Contains(asJSON(t, last), a.says) {
		t.Fatalf("it says %+v, want %q", last, a.says)
	}
	return rec.Last()
}

// dead asks the sub-commands, while no agent runs.
func (a *aviary) dead(t *testing.T) {
	t.Helper()
	say := func(output string, text string, err error) {
		if err != nil {
			text += "\n" + err.Error()
		}
		a.said[output] = text
	}
	for _, format := range []string{"table", "json", "yaml"} {
		text, err := execute(t, Explain(settings.Parts{}), append(a.flags, "--output="+format)...)
		say("explain "+format, text, err)
		text, err = execute(t, Doctor(settings.Parts{}), append(a.flags, "--output="+format, "--unit=", "--source=directory=/absent", "--render="+a.dir+"/rendered")...)
		say("doctor "+format, text, err)
	}
	text, err := execute(t, Status(settings.Parts{}), a.flags...)
	say("status", text, err)
	text, err = execute(t, Check(settings.Parts{}), append(a.flags[1:], file(t, local0+a.config))...)
	say("check", text, err)
	text, err = execute(t, Guard(settings.Parts{}), append(a.flags, "--render="+a.dir+"/rendered")...)
	say("guard", text, err)
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// scraped is the page that a scraper gets.
func scraped(t *testing.T, h http.Handler) string {
	t.Helper()
	server := httptest.NewServer(h)
	defer server.Close()
	resp, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(raw), "belay_config_assigned") {
		t.Fatalf("the page has no metrics of ours (%v):\n%s", err, raw)
	}
	return string(raw)
}

// releaseKey is a public key.
func releaseKey() string {
	return "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAO2onvM62pC1io6jQKm8Nc2UyFXcd4kOmOsBIoYtZ2ik=\n-----END PUBLIC KEY-----\n"
}
