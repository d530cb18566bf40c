#!/usr/bin/env python3
# Copyright The belay Authors.
# SPDX-License-Identifier: Apache-2.0

"""A machine provider for tests: an instance is a file, and so is a disk. DIR has them; DIR/faults has what is to go wrong."""

import base64
import fcntl
import json
import os
import signal
import sys
import time

DIR = os.environ["DIR"]
STEP = 0


class Failure(Exception):
    def __init__(self, kind, message, after=0):
        super().__init__(message)
        self.reply = {"error": {"class": kind, "message": message, "afterSeconds": after}}


def step():
    """Where a test has the program die."""
    global STEP
    if sys.argv[-1] == "create" and os.environ.get("DIE_CREATE") == str(STEP):
        os.kill(os.getpid(), signal.SIGKILL)
    STEP += 1


def path(*names):
    return os.path.join(DIR, *names)


def read(kind, token):
    try:
        with open(path(kind, token)) as f:
            return json.load(f)
    except FileNotFoundError:
        return None


def write(kind, token, value):
    step()
    with open(path(kind, token + ".new"), "w") as f:
        json.dump(value, f)
    os.rename(path(kind, token + ".new"), path(kind, token))
    step()


def remove(kind, token):
    step()
    try:
        os.remove(path(kind, token))
    except FileNotFoundError:
        pass
    step()


def config_of(desired):
    try:
        config = json.loads(base64.b64decode(desired.get("config", "")))
        if not isinstance(config, dict):
            raise ValueError
    except ValueError:
        raise Failure("InvalidConfig", "config is no JSON object")
    for field in config:
        if field not in ("kind", "size"):
            raise Failure("InvalidConfig", "config has a field that is not known: %r" % field)
    return config


def known(token, cluster=None):
    i = read("instances", token)
    if i is None or cluster is not None and i["owner"]["cluster"] != cluster:
        raise Failure("NotFound", "there is no instance %r" % token)
    return i


def shown(i):
    i = dict(i)
    if i["state"] == "Pending" and not fault("SlowStart"):
        i["state"] = "Running"
    for inner in ("size", "boots", "reboots", "created", "desired"):
        i.pop(inner, None)
    i["future"] = {"field": "that nobody knows"}
    return i


def used_up(token):
    if read("used", token) is not None:
        raise Failure("Conflict", "token %r is used up" % token)


def make(r, disks):
    token, size = r["token"], config_of(r["desired"]).get("size")
    i = read("instances", token)
    if i is not None:
        if r["digest"] not in (i["digest"], i["created"]) or i["owner"]["cluster"] != r["owner"]["cluster"]:
            raise Failure("Conflict", "token %r is in use" % token)
        return {"instance": shown(i)}
    used_up(token)
    if fault("Stockout"):
        raise Failure("Stockout", "there is no room")
    i = {"token": token, "owner": r["owner"], "digest": r["digest"], "created": r["digest"], "state": "Pending", "size": size, "boots": 1,
         "providerID": "files:///" + token, "disks": disks or [{"id": token + "-disk"}], "reboots": []}
    for disk in i["disks"]:
        if read("disks", disk["id"]) is None:
            write("disks", disk["id"], "")
    write("instances", token, i)
    return {"instance": shown(i)}


def create(r):
    return make(r, None)


def get(r):
    return {"instance": shown(known(r["token"]))}


def list_(r):
    tokens = sorted(t for t in os.listdir(path("instances")) if not t.endswith(".new"))
    if fault("StaleList"):
        tokens = []
    return {"instances": [shown(i) for i in (read("instances", t) for t in tokens) if i["owner"]["cluster"] == r["cluster"]]}


def delete(r):
    token = r["ref"]["token"]
    if read("instances", token) is None:
        write("used", token, True)  # a create that comes late makes nothing
        return {"progress": {"done": True}}
    i = known(token, r["cluster"])
    if r["mode"] != "Destroy":
        i["state"] = "Retained"
        if "until" in r:
            i["until"] = r["until"]
        else:
            i.pop("until", None)
        write("instances", token, i)
        return {"progress": {"done": True, "retained": i["disks"]}}
    write("used", token, True)
    for disk in i["disks"]:
        remove("disks", disk["id"])
    remove("instances", token)
    return {"progress": {"done": True}}


def adopt(r):
    new, old = r["as"], r["from"]["token"]
    i = read("instances", new["token"])
    if i is None:
        before = known(old, new["owner"]["cluster"])
        if before["state"] != "Retained":
            raise Failure("NotSupported", "instance %r is alive" % old)
        used_up(old)
        i = make(new, before["disks"])["instance"]
    if read("instances", old) is not None:
        write("used", old, True)
        remove("instances", old)
    return make(new, None)


def plan_of(r, i):
    size = config_of(r["desired"]).get("size")
    if r["digest"] == i["digest"]:
        return {"method": "Nothing"}
    if size != i["size"]:
        return {"method": "Replace", "reason": "another size", "disrupts": True}
    return {"method": "InPlace"}


def plan(r):
    return {"plan": plan_of(r, known(r["ref"]["token"], r["cluster"]))}


def update(r):
    method = plan_of(r, known(r["ref"]["token"], r["cluster"]))["method"]
    if method == "Replace":
        raise Failure("NotSupported", "another size takes another instance")
    if method == "InPlace":
        i = known(r["ref"]["token"])
        i["digest"] = r["digest"]
        write("instances", i["token"], i)
    return {"progress": {"done": True}}


def validate(r):
    config_of(r)
    return {}


def stop(r):
    i = known(r["ref"]["token"])
    i["state"] = "Stopped"
    write("instances", i["token"], i)
    return {"progress": {"done": True}}


def reboot(r):
    i = known(r["ref"]["token"])
    if r["id"] not in i["reboots"]:
        i["state"] = "Running"
        i["boots"] += 1
        i["reboots"].append(r["id"])
        write("instances", i["token"], i)
    return {"progress": {"done": True}}


def capacity(r):
    return {"capacity": {"cpu": "2", "memory": "%dGi" % (config_of(r).get("size") or 1)}}


def console(r):
    known(r["ref"]["token"])
    text = b"started\n" * 1000
    return {"console": base64.b64encode(text).decode()}  # more than the limit: the caller cuts it


def abilities(r):
    if r["protocol"] != 1:
        raise Failure("NotSupported", "protocol %r" % r["protocol"])
    return {"protocol": 1, "abilities": [v for v in VERBS if v != "abilities"] + ["levitate"]}


VERBS = {"abilities": abilities, "create": create, "get": get, "list": list_, "delete": delete, "plan": plan, "update": update,
         "validate": validate, "stop": stop, "reboot": reboot, "adopt": adopt, "capacity": capacity, "console": console}


def fault(name):
    return os.path.exists(path("faults", name))


def refuse():
    if fault("Latency"):
        time.sleep(60)
    for name, failure in {"RateLimit": Failure("RateLimited", "too many calls"), "RateLimitAfter": Failure("RateLimited", "too many calls", 7),
                          "Unavailable": Failure("Unavailable", "try later"), "Unauthorized": Failure("Unauthorized", "who is that?")}.items():
        if fault(name):
            raise failure


def main():
    verb = sys.argv[-1]
    request = json.load(sys.stdin)
    for kind in ("instances", "disks", "used", "faults"):
        os.makedirs(path(kind), exist_ok=True)
    with open(path("lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            if verb != "abilities":
                refuse()
            if verb not in VERBS:
                raise Failure("NotSupported", "verb %r" % verb)
            reply = VERBS[verb](request)
        except Failure as f:
            reply = f.reply
        if verb in ("create", "delete", "adopt", "update") and fault("LostReply"):
            os.remove(path("faults", "LostReply"))
            sys.exit("the connection was reset by %s" % json.dumps(request))
        step()
    print(json.dumps(reply))


main()
