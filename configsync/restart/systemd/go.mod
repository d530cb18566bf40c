// A module of its own: go-systemd and D-Bus are for those alone who import it.
module github.com/belayproject/belay/configsync/restart/systemd

go 1.26.0

require (
	github.com/belayproject/belay v0.0.0
	github.com/coreos/go-systemd/v22 v22.6.0
	github.com/google/go-cmp v0.7.0
)

require (
	github.com/godbus/dbus/v5 v5.1.0 // indirect
	github.com/kr/pretty v0.3.1 // indirect
	github.com/rogpeppe/go-internal v1.14.1 // indirect
	go.yaml.in/yaml/v2 v2.4.4 // indirect
	go.yaml.in/yaml/v3 v3.0.4 // indirect
	golang.org/x/sys v0.47.0 // indirect
	gopkg.in/check.v1 v1.0.0-20201130134442-10cb98267c6c // indirect
	sigs.k8s.io/yaml v1.6.0 // indirect
)

replace github.com/belayproject/belay => ../../../
