// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprocess

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
)

// parentCheck is how often the process looks whether its parent is still there.
const parentCheck = 250 * time.Millisecond

// Options of a run.
type Options struct {
	// Config is the path of the KubeletConfiguration.
	Config string
	// DropIn is the path of a file that is used in place of Config while it is there; empty means none. A Program
	// merges the two by itself.
	DropIn string
	// Address, where set, is used in place of the config's: it is the node's own.
	Address string
	// Journal is the path of the file to which each run adds its entries; empty means none.
	Journal string
	// Program is a real kubelet and its arguments, which is run with --config=Config added. Empty means that this process stands in.
	Program []string
	// Log gets a few lines for people.
	Log io.Writer
}

// Run loads the config, does what it asks for, or has Program do it, and returns when ctx ends (nil), when the parent process went away
// (nil), or with what stopped it. With Program it must be called from a goroutine that is locked to a thread that outlives the call.
func Run(ctx context.Context, o Options) error {
	cfg, digest, err := o.loadConfig()
	note := func(ev Event, detail string) error {
		if ev != Failed { // whoever gets the error shows it
			fmt.Fprintln(o.Log, strings.TrimSpace(fmt.Sprintf("node-process %s: config %.12s %s", ev, digest, detail)))
		}
		return appendEntry(o.Journal, Entry{At: time.Now(), PID: os.Getpid(), Event: ev, Config: digest, Detail: detail})
	}
	if err := errors.Join(note(Started, ""), err); err != nil {
		return errors.Join(err, note(Failed, err.Error()))
	}
	work := standIn
	if len(o.Program) > 0 {
		work = runProgram
	}
	if err := work(ctx, o, cfg, note); err != nil {
		return errors.Join(err, note(Failed, err.Error()))
	}
	return note(Stopped, "")
}

// loadConfig reads the config in use.
func (o Options) loadConfig() (cfg kubeletv1beta1.KubeletConfiguration, digest string, err error) {
	if o.DropIn != "" {
		if cfg, digest, err = Load(o.DropIn); !errors.Is(err, fs.ErrNotExist) {
			return cfg, digest, err
		}
	}
	return Load(o.Config)
}

// standIn does what a kubelet does with a loaded config, as far as the demo sees, until ctx ends or something stops it.
func standIn(ctx context.Context, o Options, cfg kubeletv1beta1.KubeletConfiguration, note func(Event, string) error) error {
	if err := checkImageGC(cfg); err != nil {
		return err
	}
	host, port := healthzAddress(cfg, o.Address)
	if cfg.Port != 0 {
		api, err := listenOn(ctx, host, int(cfg.Port))
		if err != nil {
			return fmt.Errorf("serving the kubelet's API: %w", err)
		}
		defer api.Close() // it is never answered there
	}
	listener, err := listenOn(ctx, host, port)
	if err != nil {
		return fmt.Errorf("serving healthz: %w", err)
	}
	server := &http.Server{Handler: healthz(), ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	if err := note(Serving, "healthz at "+listener.Addr().String()); err != nil {
		return errors.Join(err, server.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	end := orphaned(ctx)
	defer func() { cancel(); <-end }()
	select {
	case err := <-served:
		return fmt.Errorf("serving healthz: %w", err)
	case <-end:
	}
	err = server.Close()
	if end := <-served; !errors.Is(end, http.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	return err
}

func listenOn(ctx context.Context, host string, port int) (net.Listener, error) {
	return new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
}

// healthz answers GET /healthz with ok.
func healthz() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	return mux
}

// orphaned is closed when ctx ends or the parent is another process than it is now: a killed agent must not leave its
// child behind.
func orphaned(ctx context.Context) <-chan struct{} {
	done, parent := make(chan struct{}), os.Getppid()
	go func() {
		defer close(done)
		tick := time.NewTicker(parentCheck)
		defer tick.Stop()
		for os.Getppid() == parent {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	return done
}
