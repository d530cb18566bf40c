// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package exec is a machine provider that calls one program, in any language, with JSON in and JSON out: whoever can write that has a provider
// without Go. A program in Go is made of any provider by [Serve].
//
// # The protocol
//
// For each call the program is started as
//
//	PATH ARGS... VERB
//
// with one JSON object on standard input, the request, and answers with one JSON object on standard output, the reply. It ends with exit code 0. The
// requests are the types of package github.com/belayproject/belay/machine/provider as encoding/json writes them; where those have bytes
// (config, values of bootstrap and credentials), JSON has base64.
//
//	VERB       request                          reply
//	abilities  {"protocol":1}                   {"protocol":1,"abilities":[VERB,...]}
//	create     CreateRequest                    {"instance":Instance}
//	get        Ref                              {"instance":Instance}
//	list       Scope                            {"instances":[Instance,...]}
//	delete     DeleteRequest                    {"progress":Progress}
//	plan       UpdateRequest                    {"plan":Plan}
//	update     UpdateRequest                    {"progress":Progress}
//	validate   Desired                          {}
//	stop       {"ref":Ref}                      {"progress":Progress}
//	reboot     {"ref":Ref,"id":"..."}           {"progress":Progress}
//	adopt      AdoptRequest                     {"instance":Instance}
//	capacity   Desired                          {"capacity":{"cpu":"4",...}}
//	console    {"ref":Ref,"limit":4096}         {"console":"base64"}
//
// Any call can instead be answered by
//
//	{"error":{"class":"Stockout","message":"...","afterSeconds":30}}
//
// with one of the classes of package provider, whatever the exit code; afterSeconds may be left out. A class that is not known is Internal. Fields of
// a reply that are not known are ignored. An exit code other than 0 without an error in JSON is Internal too, and the error has the end of what
// the program wrote to standard error.
//
// The program is asked for its abilities once, by [New]. Create and delete it must have. Verbs that it does not name are never called: get and
// list are NotSupported then, and the others are no abilities; stop and reboot are one ability. A limit of 0 is left out of a request.
//
// What the program has to promise is what every provider does; package github.com/belayproject/belay/machine/machinetest checks it. Above all: a
// token makes one instance, also when the program was killed in the middle of an earlier create, and several may run at a time. A sample session,
// where > is what the program reads, and < what it writes:
//
//	$ acme-machines abilities
//	> {"protocol":1}
//	< {"protocol":1,"abilities":["create","get","list","delete"]}
//
//	$ acme-machines create
//	> {"token":"4a1c52f0-8d01e3b7a2c4f596-1","owner":{"cluster":"c1","namespace":"fleet","name":"web-1","uid":"7e0c","incarnation":1},
//	   "digest":"0cf1...","desired":{"config":"eyJzaXplIjoibGFyZ2UifQ==","versions":{"kubelet":"v1.36.3"},"node":{}},
//	   "join":{"endpoint":"https://api:6443","bootstrap":{"token":"c2VjcmV0"}}}
//	< {"instance":{"token":"4a1c52f0-8d01e3b7a2c4f596-1","state":"Pending","digest":"0cf1...",
//	   "owner":{"cluster":"c1","namespace":"fleet","name":"web-1","uid":"7e0c","incarnation":1}}}
//
//	$ acme-machines get
//	> {"token":"4a1c52f0-8d01e3b7a2c4f596-1"}
//	< {"instance":{"token":"4a1c52f0-8d01e3b7a2c4f596-1","providerID":"acme:///eu-1/4a1c52f0-8d01e3b7a2c4f596-1","state":"Running",...}}
//
//	$ acme-machines delete
//	> {"ref":{"token":"4a1c52f0-8d01e3b7a2c4f596-1"},"mode":"Destroy","cluster":"c1"}
//	< {"progress":{"done":false,"message":"is shutting down","afterSeconds":5}}
//
// # What is promised
//
// Secrets are on standard input alone, never in arguments or in the environment. The values of bootstrap and credentials are taken out of every
// message and of what is quoted of standard error, as they are and in base64, hex and the like; values of less than 4 bytes are not looked for.
// A reply that is about another token, has a ProviderID that does not end in it, a state that there is not, or an instance of another cluster,
// is Internal and believed by nobody. A program that takes too long or writes too much is killed, with its process group; on Linux also what it has
// left running in that when it ends.
//
// # What is not promised
//
// The program is trusted: it has the rights of its caller. A call that was cut off may have had its effect. What a program does with secrets is its
// own affair.
//
// # Concurrency and crashes
//
// A provider may be used by any number of goroutines; each call is a process of its own, and nothing is kept between calls but the abilities. A call
// whose ctx ends kills its program and returns within half a second. A program whose caller is killed goes on to its end.
package exec
