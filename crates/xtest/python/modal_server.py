"""A stand-in for Modal's servers, for tests: it speaks the wire interface of Modal's client, by the message definitions
that the client brings, and really runs commands.

A sandbox is a separate root directory on this machine with the host's programs read-only; every command runs in
separate namespaces. Images are not built: their instructions are recorded, and an image with `RUN false` fails.

    modal_server.py TRACE        prints its address, then serves until it is killed
"""

import asyncio
import base64
import hashlib
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time

import aiohttp.web
import google.protobuf.message_factory
import grpclib
import grpclib.const
import grpclib.server
from google.protobuf import empty_pb2
from modal_proto import api_pb2
from modal_proto import task_command_router_pb2 as router_pb2

ENTER = r"""
set -e
root=$1; where=$2; shift 2
mount --make-rprivate /
mount --bind "$root" "$root"
for name in usr etc dev; do mkdir -p "$root/$name"; mount --rbind "/$name" "$root/$name"; done
mount -o remount,bind,ro "$root/usr"; mount -o remount,bind,ro "$root/etc"
mkdir -p "$root/proc"; mount -t proc proc "$root/proc"
exec /usr/sbin/chroot "$root" /usr/bin/bash -c 'cd "$1" 2>/dev/null || cd /; shift; exec "$@"' enter "$where" "$@"
"""
SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
BUILDER = "2025.06"
# Invented and easy to calculate with. The rates of functions differ, so that a test notices if they are mixed up.
RATES = {
    "cpu_hour_cost": "0.125",
    "mem_gib_hour_cost": "0.0625",
    "cpu_hour_cost_sandbox": "0.5",
    "mem_gib_hour_cost_sandbox": "0.25",
}
# A token without permission to read anything.
POOR_TOKEN = "ak-poor"
Result = api_pb2.GenericResult


def refuse(status, message):
    raise grpclib.GRPCError(getattr(grpclib.Status, status), message)


def token():
    part = lambda value: base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()
    return f"{part({'alg': 'none'})}.{part({'exp': int(time.time()) + 3600})}.x"


class Command:
    """A command of a sandbox, with what it printed so far."""

    def __init__(self):
        self.printed = {1: bytearray(), 2: bytearray()}
        self.changed = asyncio.Condition()
        self.code = None
        self.process = None

    async def follow(self):
        async def copy(stream, number):
            while piece := await stream.read(65536):
                async with self.changed:
                    self.printed[number] += piece
                    self.changed.notify_all()

        await asyncio.gather(copy(self.process.stdout, 1), copy(self.process.stderr, 2))
        code = await self.process.wait()
        async with self.changed:
            self.code = code
            self.changed.notify_all()

    async def wait(self):
        async with self.changed:
            await self.changed.wait_for(lambda: self.code is not None)
        return self.code


class Sandbox:
    def __init__(self, name, request, mounts):
        self.name, self.app, self.created = name, request.app_id, time.time()
        self.tags = {tag.tag_name: tag.tag_value for tag in request.tags}
        self.definition, self.commands, self.result, self.ended = request.definition, {}, None, asyncio.Event()
        self.root = tempfile.mkdtemp(prefix="modal-sandbox-")
        os.chmod(self.root, 0o755)
        for name in ("workspace", "tmp", "root", "home"):
            os.makedirs(os.path.join(self.root, name))
        for link in ("bin", "sbin", "lib", "lib64"):
            if os.path.islink("/" + link):
                os.symlink(os.readlink("/" + link), os.path.join(self.root, link))
        for mount in mounts:
            for filename, (content, mode) in mount.items():
                place = os.path.join(self.root, filename.lstrip("/"))
                os.makedirs(os.path.dirname(place), exist_ok=True)
                with open(place, "wb") as file:
                    file.write(content)
                os.chmod(place, mode or 0o644)

    def end(self):
        if self.result is None:
            self.result = Result(status=Result.GENERIC_STATUS_TERMINATED, exitcode=137)
            for command in self.commands.values():
                if command.process is not None and command.process.returncode is None:
                    os.killpg(command.process.pid, signal.SIGKILL)
            self.ended.set()
            shutil.rmtree(self.root, ignore_errors=True)


class Server:
    def __init__(self, trace):
        self.trace = trace
        self.address = ""
        self.blobs_address = ""
        self.token = None
        self.apps = {}
        self.blobs, self.contents, self.mounts, self.images, self.sandboxes, self.tasks = {}, {}, {}, {}, {}, {}

    # The control plane.

    def AuthTokenGet(self, request):
        return api_pb2.AuthTokenGetResponse(token=token())

    def AppGetOrCreate(self, request):
        if request.app_name not in self.apps:
            if self.token == POOR_TOKEN:
                refuse("PERMISSION_DENIED", "this token does not see apps")
            if request.object_creation_type != api_pb2.OBJECT_CREATION_TYPE_CREATE_IF_MISSING:
                refuse("NOT_FOUND", "there is no such app")
            self.apps[request.app_name] = f"ap-{len(self.apps) + 1}"
        return api_pb2.AppGetOrCreateResponse(app_id=self.apps[request.app_name])

    def WorkspaceNameLookup(self, request):
        return api_pb2.WorkspaceNameLookupResponse(workspace_name="tests", username="tests")

    def WorkspaceBillingRates(self, request):
        if self.token == POOR_TOKEN:
            refuse("PERMISSION_DENIED", "this token does not see rates")
        return api_pb2.WorkspaceBillingRatesResponse(rates=RATES, formatted="rates")

    def EnvironmentGetOrCreate(self, request):
        settings = api_pb2.EnvironmentSettings(image_builder_version=BUILDER)
        metadata = api_pb2.EnvironmentMetadata(name="main", settings=settings)
        return api_pb2.EnvironmentGetOrCreateResponse(environment_id="en-1", metadata=metadata)

    def BlobCreate(self, request):
        blob = f"bl-{len(self.blobs)}"
        self.blobs[blob] = b""
        url = f"{self.blobs_address}/{blob}"
        return api_pb2.BlobCreateResponse(
            blob_id=blob, upload_url=url, blob_ids=[blob], upload_urls={"items": [url]}
        )

    async def put_blob(self, request):
        content = await request.read()
        self.blobs[request.match_info["blob"]] = content
        return aiohttp.web.Response(headers={"ETag": f'"{hashlib.md5(content).hexdigest()}"'})

    def MountBatchedCheckExistence(self, request):
        missing = [digest for digest in request.sha256_hex_hashes if digest not in self.contents]
        return api_pb2.MountBatchedCheckExistenceResponse(missing_sha256_hex_hashes=missing)

    def MountPutFile(self, request):
        content = self.blobs.pop(request.data_blob_id) if request.data_blob_id else request.data
        if request.data_blob_id or request.data:
            if hashlib.sha256(content).hexdigest() != request.sha256_hex:
                raise ValueError("a file is not what it is said to be")
            self.contents[request.sha256_hex] = content
        return api_pb2.MountPutFileResponse(exists=request.sha256_hex in self.contents)

    def MountGetOrCreate(self, request):
        mount = f"mo-{len(self.mounts)}"
        self.mounts[mount] = {
            file.filename: (self.contents.get(file.sha256_hex, b""), file.mode) for file in request.files
        }
        metadata = api_pb2.MountHandleMetadata(content_checksum_sha256_hex="0" * 64)
        return api_pb2.MountGetOrCreateResponse(mount_id=mount, handle_metadata=metadata)

    def ImageGetOrCreate(self, request):
        image = f"im-{len(self.images)}"
        self.images[image] = list(request.image.dockerfile_commands)
        return api_pb2.ImageGetOrCreateResponse(image_id=image)

    async def ImageJoinStreaming(self, request, stream):
        log = api_pb2.TaskLogs(data="Step 1: building\n")
        await stream.send_message(api_pb2.ImageJoinStreamingResponse(entry_id="1", task_logs=[log]))
        failed = "RUN false" in self.images[request.image_id]
        status = Result.GENERIC_STATUS_FAILURE if failed else Result.GENERIC_STATUS_SUCCESS
        metadata = api_pb2.ImageMetadata(image_builder_version=BUILDER, workdir="/workspace")
        result = Result(status=status, exception="RUN false failed" if failed else "")
        await stream.send_message(
            api_pb2.ImageJoinStreamingResponse(entry_id="2", eof=True, result=result, metadata=metadata)
        )

    def SandboxCreateV2(self, request):
        for tag in request.tags:
            if not all(re.fullmatch("[a-zA-Z0-9._-]{1,63}", word) for word in (tag.tag_name, tag.tag_value)):
                refuse("INVALID_ARGUMENT", f"{tag.tag_name}={tag.tag_value} is no tag")
        number = len(self.sandboxes) + 1
        sandbox, task = f"sb-{number}", f"ta-{number}"
        mounts = [self.mounts[mount] for mount in request.definition.mount_ids]
        made = self.sandboxes[sandbox] = self.tasks[task] = Sandbox(sandbox, request, mounts)
        resources = made.definition.resources
        facts = {
            "id": sandbox,
            "tags": made.tags,
            "milli_cpu": [resources.milli_cpu, resources.milli_cpu_max],
            "memory_mb": [resources.memory_mb, resources.memory_mb_max],
            "seconds": made.definition.timeout_secs,
        }
        self.trace.write(json.dumps({"sandbox": facts}) + "\n")
        access = api_pb2.CommandRouterAccess(url=self.address, jwt=token())
        return api_pb2.SandboxCreateV2Response(
            sandbox_id=sandbox, task_id=task, command_router_access=access, sandbox_token="token"
        )

    async def SandboxWaitV2(self, request):
        sandbox = self.sandboxes[request.sandbox_id]
        try:
            await asyncio.wait_for(sandbox.ended.wait(), request.timeout or 0.001)
        except asyncio.TimeoutError:
            return api_pb2.SandboxWaitResponse()
        return api_pb2.SandboxWaitResponse(result=sandbox.result)

    def SandboxTerminateV2(self, request):
        self.sandboxes[request.sandbox_id].end()
        self.trace.write(json.dumps({"ended": request.sandbox_id}) + "\n")
        return api_pb2.SandboxTerminateResponse()

    def SandboxListV2(self, request):
        wanted = {tag.tag_name: tag.tag_value for tag in request.tags}
        page = [
            api_pb2.SandboxInfo(id=sandbox.name, created_at=sandbox.created, app_id=sandbox.app)
            for sandbox in reversed(self.sandboxes.values())
            if sandbox.app == request.app_id
            and wanted.items() <= sandbox.tags.items()
            and (request.include_finished or sandbox.result is None)
            and (not request.before_timestamp or sandbox.created < request.before_timestamp)
        ]
        # A page has one entry, so that a client must request further pages.
        return api_pb2.SandboxListResponse(sandboxes=page[:1])

    def SandboxTagsGetV2(self, request):
        tags = self.sandboxes[request.sandbox_id].tags
        return api_pb2.SandboxTagsGetResponse(
            tags=[api_pb2.SandboxTag(tag_name=name, tag_value=value) for name, value in tags.items()]
        )

    # The router of commands.

    async def TaskExecStart(self, request):
        sandbox, command = self.tasks[request.task_id], Command()
        sandbox.commands[request.exec_id] = command
        own_network = sandbox.definition.network_access.network_access_type == api_pb2.NetworkAccess.BLOCKED
        command.process = await asyncio.create_subprocess_exec(
            *["unshare", "-m", "-p", "-f", "--kill-child"],
            *(["-n"] if own_network else []),
            *["/usr/bin/bash", "-c", ENTER, "enter", sandbox.root, request.workdir or "/"],
            *request.command_args,
            env={"PATH": SEARCH_PATH, "HOME": "/root"},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        asyncio.ensure_future(command.follow())
        return router_pb2.TaskExecStartResponse()

    def command(self, request):
        return self.tasks[request.task_id].commands[request.exec_id]

    async def feed(self, command, data, is_end):
        try:
            if data:
                command.process.stdin.write(data)
                await command.process.stdin.drain()
            if is_end:
                command.process.stdin.close()
        except ConnectionError:
            pass

    async def TaskExecStdinWrite(self, request):
        await self.feed(self.command(request), request.data, request.eof)
        return router_pb2.TaskExecStdinWriteResponse()

    async def TaskExecStdinWriteStream(self, first, stream):
        command = self.command(first.start)
        while (message := await stream.recv_message()) is not None:
            if message.WhichOneof("payload") == "data":
                await self.feed(command, message.data, False)
            elif message.WhichOneof("payload") == "end":
                await self.feed(command, b"", getattr(message.end, "eof", False))
        await stream.send_message(router_pb2.TaskExecStdinWriteStreamResponse())

    async def TaskExecStdioRead(self, request, stream):
        command, at = self.command(request), request.offset
        name = router_pb2.TaskExecStdioFileDescriptor.Name(request.file_descriptor)
        printed = command.printed[2 if "STDERR" in name else 1]
        while True:
            async with command.changed:
                await command.changed.wait_for(lambda: len(printed) > at or command.code is not None)
                piece = bytes(printed[at : at + 1_000_000])
            if not piece:
                return
            await stream.send_message(router_pb2.TaskExecStdioReadResponse(data=piece))
            at += len(piece)

    async def TaskExecWait(self, request):
        return router_pb2.TaskExecWaitResponse(code=await self.command(request).wait())


class Service:
    """One service of the interface: calls for which the server has a method are answered, all others are refused."""

    def __init__(self, server, descriptor, trace):
        self.server, self.descriptor, self.trace = server, descriptor, trace

    def __mapping__(self):
        message = lambda kind: (
            empty_pb2.Empty
            if kind.full_name == "google.protobuf.Empty"
            else google.protobuf.message_factory.GetMessageClass(kind)
        )
        handlers = {}
        for method in self.descriptor.methods:
            cardinality = {
                (False, False): grpclib.const.Cardinality.UNARY_UNARY,
                (False, True): grpclib.const.Cardinality.UNARY_STREAM,
                (True, False): grpclib.const.Cardinality.STREAM_UNARY,
                (True, True): grpclib.const.Cardinality.STREAM_STREAM,
            }[(method.client_streaming, method.server_streaming)]
            reply = message(method.output_type)
            handlers[f"/{self.descriptor.full_name}/{method.name}"] = grpclib.const.Handler(
                self.handler(method, reply), cardinality, message(method.input_type), reply
            )
        return handlers

    def handler(self, method, reply):
        async def handle(stream):
            request = await stream.recv_message()
            self.trace.write(json.dumps({"rpc": method.name}) + "\n")
            answer = getattr(self.server, method.name, None)
            if answer is None:
                self.trace.write(json.dumps({"unknown": method.name}) + "\n")
                if not (method.server_streaming or method.client_streaming):
                    await stream.send_message(reply())
                return
            if method.server_streaming or method.client_streaming:
                await answer(request, stream)
                return
            self.server.token = stream.metadata.get("x-modal-token-id")
            said = answer(request)
            if asyncio.iscoroutine(said):
                said = await said
            if not isinstance(said, reply):
                said = reply.FromString(said.SerializeToString())
            await stream.send_message(said)

        return handle


async def main():
    trace = open(sys.argv[1], "a", buffering=1)
    server = Server(trace)
    blobs = aiohttp.web.Application(client_max_size=2**31)
    blobs.router.add_put("/{blob}", server.put_blob)
    runner = aiohttp.web.AppRunner(blobs)
    await runner.setup()
    site = aiohttp.web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.blobs_address = "http://127.0.0.1:%d" % runner.addresses[0][1]
    control = api_pb2.DESCRIPTOR.services_by_name["ModalClient"]
    routers = router_pb2.DESCRIPTOR.services_by_name.values()
    serving = grpclib.server.Server([Service(server, found, trace) for found in [control, *routers]])
    await serving.start("127.0.0.1", 0)
    server.address = "http://127.0.0.1:%d" % serving._server.sockets[0].getsockname()[1]
    print(server.address, flush=True)
    await serving.wait_closed()


asyncio.run(main())
